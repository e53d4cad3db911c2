// tapedeck data list, tapedeck data info NAME: which data sets there are, and what is in one.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/problem.h"
#include "apps/record.h"
#include "data/catalog.h"
#include "data/loader.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

struct ValueRange {
  float low, high;
};
ValueRange value_range(const Dataset& data) {
  if (!data.pixels.empty()) {
    const auto [low, high] = std::minmax_element(data.pixels.begin(), data.pixels.end());
    return {static_cast<float>(*low) * data.pixel_scale, static_cast<float>(*high) * data.pixel_scale};
  }
  const auto [low, high] = std::minmax_element(data.values.begin(), data.values.end());
  return {*low, *high};
}

// Examples of each class among these rows.
std::vector<int64_t> class_counts(const Dataset& data, std::span<const int32_t> rows) {
  std::vector<int64_t> counts(static_cast<size_t>(data.classes));
  for (const int32_t row : rows) ++counts[static_cast<size_t>(data.labels[static_cast<size_t>(row)])];
  return counts;
}

const DataKind& entry_of(std::string_view name) { return *parse_data(name).kind; }

struct Split {
  const char* name;
  const std::vector<int32_t>& rows;
};
std::vector<Split> splits(const Dataset& data) {
  return {{"train", data.train}, {"validation", data.validation}, {"test", data.test}};
}

Json info_json(const Dataset& data, const DataKind& entry) {
  const ValueRange range = value_range(data);
  Json out = {{"format_version", kFormatVersion},
              {"name", data.name},
              {"what", entry.what},
              {"origin", entry.origin},
              {"rows", data.rows()},
              {"features", data.features},
              {"shape", data.shape},
              {"classes", data.classes},
              {"range", {range.low, range.high}}};
  if (!data.encoding.class_names.empty()) out["class_names"] = data.encoding.class_names;
  for (const auto& [name, rows] : splits(data)) out["splits"][name] = {{"rows", rows.size()}};
  if (data.classes > 0)
    for (const auto& [name, rows] : splits(data)) out["splits"][name]["class_counts"] = class_counts(data, rows);
  return out;
}

std::string info_text(const Dataset& data, const DataKind& entry) {
  const ValueRange range = value_range(data);
  std::string out =
      fmt::format("{}: {}\nfrom      {}\nrows      {}\nfeatures  {} ({}), values from {:.4g} to {:.4g}\n", data.name,
                  entry.what, entry.origin, data.rows(), data.features, data.shape, range.low, range.high);
  out += fmt::format("classes   {}\n\n{:<10} {:>7}", data.classes, "split", "rows");
  for (int k = 0; k < data.classes; ++k)
    out += fmt::format(" {:>7}", data.encoding.class_names.empty() ? std::to_string(k)
                                                                   : data.encoding.class_names[static_cast<size_t>(k)]);
  for (const auto& [name, rows] : splits(data)) {
    out += fmt::format("\n{:<10} {:>7}", name, rows.size());
    if (data.classes > 0)
      for (const int64_t count : class_counts(data, rows)) out += fmt::format(" {:>7}", count);
  }
  return out + "\n";
}

}  // namespace

int run_data_list(const Config& config) {
  if (config.json) {
    Json sets = Json::array();
    for (const DataKind& e : data_kinds())
      sets.push_back({{"name", e.name}, {"what", e.what}, {"size", e.size}, {"origin", e.origin}});
    std::cout << json_text({{"format_version", kFormatVersion}, {"data", sets}}) << "\n";
    return exit_done;
  }
  for (const DataKind& e : data_kinds())
    std::cout << fmt::format("{:<8} {}\n{:<8} {}\n{:<8} {}\n", e.name, e.what, "", e.size, "", e.origin);
  return exit_done;
}

int run_data_info(const Config& config) {
  const Dataset data = load_dataset(config.data, data_options(config));
  if (config.order) {
    const std::vector<int32_t> order = epoch_order(data.train, static_cast<uint64_t>(config.seed), *config.order);
    if (config.json)
      std::cout << json_text(order, -1) << "\n";
    else
      for (const int32_t row : order) std::cout << row << "\n";
    return exit_done;
  }
  const DataKind& entry = entry_of(config.data);
  if (config.json)
    std::cout << json_text(info_json(data, entry)) << "\n";
  else
    std::cout << info_text(data, entry);
  return exit_done;
}

}  // namespace tapedeck
