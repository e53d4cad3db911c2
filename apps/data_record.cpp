#include "apps/data_record.h"

#include <fmt/format.h>

#include "apps/files.h"
#include "engine/check.h"

namespace tapedeck {

std::string hash_text(const Dataset& data) { return fmt::format("{:016x}", content_hash(data)); }

Json data_json(const Dataset& data) {
  return {
      {"name", data.name},
      {"features", data.features},
      {"classes", data.classes},
      {"rows", data.rows()},
      {"splits", {{"train", data.train.size()}, {"validation", data.validation.size()}, {"test", data.test.size()}}},
      {"hash", hash_text(data)},
      {"columns", data.encoding.columns},
      {"mean", data.encoding.mean},
      {"deviation", data.encoding.deviation},
      {"class_names", data.encoding.class_names}};
}

DataRecord read_data_record(const std::filesystem::path& folder) {
  const std::string file = (folder / "data.json").string();
  const Json json = Json::parse(read_file(file), nullptr, false);
  if (!json.is_object()) throw Error(fmt::format("{}: is not JSON: damaged", file));
  DataRecord out;
  try {
    if (const Json& version = json.at("format_version"); version != kFormatVersion)
      throw Error(fmt::format("{}: has format_version {}, this program reads {}; use a newer tapedeck", file,
                              version.dump(), kFormatVersion));
    json.at("name").get_to(out.name), json.at("hash").get_to(out.hash);
    json.at("rows").get_to(out.rows), json.at("features").get_to(out.features);
    json.at("classes").get_to(out.classes);
    json.at("columns").get_to(out.encoding.columns);
    json.at("mean").get_to(out.encoding.mean), json.at("deviation").get_to(out.encoding.deviation);
    json.at("class_names").get_to(out.encoding.class_names);
  } catch (const nlohmann::json::exception&) {
    throw Error(fmt::format("{}: does not describe data (name, features, classes, columns, …): damaged", file));
  }
  const Encoding& by = out.encoding;
  const auto features = static_cast<size_t>(out.features);
  const bool names_fit = by.class_names.empty() || std::ssize(by.class_names) == out.classes;
  bool numbers_fit = by.mean.size() == by.deviation.size() && (by.mean.empty() || by.mean.size() == features);
  for (const double deviation : by.deviation) numbers_fit = numbers_fit && deviation > 0;
  if (!names_fit || !numbers_fit || (!by.columns.empty() && by.columns.size() != features))
    throw Error(
        fmt::format("{}: its lists do not fit {} features and {} classes: damaged", file, features, out.classes));
  return out;
}

void check_same_data(const std::filesystem::path& folder, const Dataset& data, bool forced) {
  const DataRecord then = read_data_record(folder);
  const std::string hash = hash_text(data);
  const auto shown = [](const std::string& name, int64_t rows, int64_t features, int classes,
                        const std::string& content) {
    return fmt::format("{} with {} rows of {} features, {} classes, content {}", name, rows, features, classes,
                       content);
  };
  const bool same_names = then.encoding.class_names == data.encoding.class_names;
  const bool fits = then.features == data.features && then.classes == data.classes &&
                    (same_names || !data.sequences);  // else the model's tokens would mean other characters
  const bool same = fits && same_names && then.hash == hash && then.rows == data.rows();
  if (!same && !(fits && forced))
    throw UsageError(fmt::format(
        "{}: the data has changed: it was {}, and is now {}; bring it back, or {}", folder.string(),
        shown(then.name, then.rows, then.features, then.classes, then.hash),
        shown(data.name, data.rows(), data.features, data.classes, hash),
        fits ? "--force to go on with what is there" : "begin a new run, for the weights of this one fit no other"));
}

}  // namespace tapedeck
