#include "apps/data_record.h"

#include <fmt/format.h>

#include "apps/files.h"
#include "engine/check.h"

namespace tapedeck {

Json data_json(const Dataset& data) {
  return {
      {"name", data.name},
      {"features", data.features},
      {"classes", data.classes},
      {"rows", data.rows()},
      {"splits", {{"train", data.train.size()}, {"validation", data.validation.size()}, {"test", data.test.size()}}},
      {"hash", fmt::format("{:016x}", content_hash(data))},
      {"columns", data.encoding.columns},
      {"mean", data.encoding.mean},
      {"deviation", data.encoding.deviation},
      {"class_names", data.encoding.class_names}};
}

Encoding encoding_from_json(const Json& json, const std::string& source) try {
  Encoding out;
  json.at("columns").get_to(out.columns);
  json.at("mean").get_to(out.mean);
  json.at("deviation").get_to(out.deviation);
  json.at("class_names").get_to(out.class_names);
  return out;
} catch (const nlohmann::json::exception&) {
  throw Error(fmt::format("{}: does not describe data (columns, mean, deviation, class_names): damaged", source));
}

void check_same_data(const std::filesystem::path& folder, const Dataset& data) {
  const std::filesystem::path file = folder / "data.json";
  const Json recorded = Json::parse(read_file(file), nullptr, false), now = data_json(data);
  if (!recorded.is_object()) throw Error(fmt::format("{}: is not JSON: damaged", file.string()));
  const auto shown = [](const Json& d) {
    return fmt::format("{} with {} rows of {} features, {} classes, content {}", d.value("name", "?"),
                       d.value("rows", int64_t{0}), d.value("features", int64_t{0}), d.value("classes", 0),
                       d.value("hash", "?"));
  };
  for (const char* key : {"rows", "features", "classes", "splits", "hash", "class_names"})
    if (!recorded.contains(key) || recorded[key] != now[key])
      throw UsageError(
          fmt::format("{}: the data has changed: it was {}, and is now {}; bring it back, or --force to go on "
                      "with what is there",
                      folder.string(), shown(recorded), shown(now)));
}

}  // namespace tapedeck
