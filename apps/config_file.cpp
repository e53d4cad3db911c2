#include "apps/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/options.h"
#include "data/catalog.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

std::string read_text(const std::filesystem::path& file) {
  if (std::filesystem::is_directory(file)) throw UsageError(fmt::format("{}: is a folder, not a file", file.string()));
  std::ifstream in(file, std::ios::binary);
  if (!in) throw UsageError(fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
  return {std::istreambuf_iterator<char>(in), {}};
}

Json parse(const std::filesystem::path& file, const std::string& text) {
  std::set<std::string> seen;  // the parser itself would keep the last of two equal keys in silence
  const auto refuse_twins = [&](int depth, Json::parse_event_t event, Json& key) {
    if (event != Json::parse_event_t::key || depth != 1) return true;
    std::string name = key.get<std::string>();
    std::replace(name.begin(), name.end(), '_', '-');
    if (!seen.insert(name).second)
      throw UsageError(fmt::format("{}: key {} stands there twice; keep one", file.string(), name));
    return true;
  };
  try {
    Json document = Json::parse(text, refuse_twins);
    if (document.is_object()) return document;
  } catch (const nlohmann::json::exception& e) {
    throw UsageError(fmt::format("{}: is not strict JSON: {}", file.string(), e.what()));
  }
  throw UsageError(fmt::format("{}: needs a JSON object such as {{\"lr\": 0.01}}", file.string()));
}

// The text that the flag would have been given, so that both are parsed by the same rules.
std::string as_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string list;
  for (const Json& item : value) list += (list.empty() ? "" : ",") + item.dump();
  return list;
}

bool may_be_unset(const Option& option) {
  return std::holds_alternative<std::optional<int64_t> Config::*>(option.member) ||
         std::holds_alternative<std::optional<double> Config::*>(option.member) ||
         std::holds_alternative<std::optional<Target> Config::*>(option.member) ||
         (std::holds_alternative<std::string Config::*>(option.member) && option.choices.empty());
}

}  // namespace

void read_config_file(Config& config, const std::filesystem::path& file) {
  const Json document = parse(file, read_text(file));
  const unsigned command = command_bit(config.command);
  const bool is_record = document.contains("format_version");  // written by a run
  if (is_record) {
    const Json& version = document["format_version"];
    if (!version.is_number_integer() || version.get<int64_t>() > kFormatVersion || version.get<int64_t>() < 1)
      throw UsageError(fmt::format("{}: has format_version {}, this program reads up to {}; use a newer tapedeck",
                                   file.string(), version.dump(), kFormatVersion));
  }
  for (const auto& [key, entry] : document.items()) {
    if (is_record && (key == "format_version" || key == "command")) continue;
    const Option* option = find_option(key, command);
    if (is_record && (find_option(key, ~0u) && (!option || option->of_one_run))) continue;
    if (!option || option->name == std::string_view("config"))
      throw UsageError(
          fmt::format("{}: unknown key {}; the nearest is {}", file.string(), key, nearest_option(key, command)));
    const bool has_origin = entry.is_object() && entry.contains("value");
    const Json& value = has_origin ? entry["value"] : entry;
    if (!value.is_null() || !may_be_unset(*option))
      set_value(config, *option, as_text(value), fmt::format("{}: {}", file.string(), option->name));
    config.origins[option->name] = Origin::file;
  }
}

Config run_config(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  if (!std::filesystem::exists(file))
    throw UsageError(fmt::format("{}: holds no run (there is no config.json)", folder.string()));
  Config config;
  config.command = "train";
  read_config_file(config, file);
  for (const char* key : {"model", "hidden", "activation", "data", "loss", "precision"})
    if (!config.origins.contains(key))
      throw Error(fmt::format("{}: does not say {}, without which the model cannot be made again", file.string(), key));
  parse_data(config.data);
  return config;
}

}  // namespace tapedeck
