// A file of options: what is taken is written as config.json and read again as the same.
#include <nlohmann/json.hpp>

#include "apps/config.h"
#include "tests/fuzz/fuzz.h"

using namespace tapedeck;

std::vector<std::string> seeds() {
  return {"{}", R"({"lr": 0.01, "hidden": [64, 32], "eval_every": 5, "json": true, "note": "x \u00e9"})",
          R"({"data": "csv:a.csv", "label": "kind", "validation": 0.2, "test": 0.1, "data_dir": null})",
          R"({"optimizer": "momentum", "momentum": 0.5, "memory-limit": "2GB", "target": "loss=0.5"})",
          to_json(configure("train", {{"data", "blobs"}, {"seed", "7"}, {"out", "runs/a"}})).dump(1)};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile file(bytes_of(data, size));
  Config config;
  if (!accepts([&] { config = configure("train", {{"config", file.path()}, {"threads", "1"}}); })) return 0;
  const MemoryFile record(to_json(config).dump());
  Config again;
  promise(accepts([&] {
            again = configure("train", {{"config", record.path()}, {"threads", "1"}});
          }),
          "config.json is taken as a file of options");
  const Json before = to_json(config), after = to_json(again);
  for (const auto& [key, entry] : before.items())
    if (entry.is_object() && key != "config" && key != "out" && key != "force" && key != "dry-run")
      promise(after.at(key)["value"] == entry["value"], key + " comes back as it was");
  return 0;
}
