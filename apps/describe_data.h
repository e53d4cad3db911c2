// What data sets and files hold, as `tapedeck data info` and `data convert` say it.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "apps/config.h"
#include "data/catalog.h"
#include "data/dataset.h"
#include "data/shard.h"

namespace tapedeck {

Json dataset_json(const Dataset& data, const DataKind& kind);
std::string dataset_text(const Dataset& data, const DataKind& kind);

Json shard_json(const Shard& shard);       // type, counts and parts, from its header
std::string verified(const Shard& shard);  // "all 842 blocks good", after reading them; throws Error where one is not

// What a file is, told by its content: "shard", "csv", "npy", "idx", "safetensors" or "text". Throws Error for others.
std::string file_kind(const std::string& path);

// What a file holds that has no examples with answers in it. Throws Error where it is damaged.
Json file_json(const std::string& path, const std::string& kind);

std::string facts_text(const Json& facts);  // a line a key

}  // namespace tapedeck
