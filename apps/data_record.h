// data.json of a run folder: the data that a run was trained on, and how it was encoded. A saved model needs it to take
// other data the same way, and a resumed run to see that the data is still the same.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/config.h"
#include "data/dataset.h"

namespace tapedeck {

std::string hash_text(const Dataset& data);  // of its content, as files hold it
Json data_json(const Dataset& data);

struct DataRecord {
  std::string name, hash;
  int64_t rows = 0, features = 0;
  int classes = 0;  // 0: numbers to predict
  Encoding encoding;
};
DataRecord read_data_record(const std::filesystem::path& folder);  // throws Error naming the file and what is wrong

// Throws UsageError with both descriptions when this is not the data that the run in `folder` was trained on; forced,
// only when its weights do not fit it.
void check_same_data(const std::filesystem::path& folder, const Dataset& data, bool forced);

}  // namespace tapedeck
