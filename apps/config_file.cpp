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
#include "data/utf8.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

constexpr size_t most_bytes = 1 << 20;
constexpr size_t most_depth = 3;  // {"hidden": {"value": [512, 512], …}, …}

std::string read_text(const std::filesystem::path& file) {
  if (std::filesystem::is_directory(file)) throw UsageError(fmt::format("{}: is a folder, not a file", file.string()));
  std::ifstream in(file, std::ios::binary);
  if (!in) throw UsageError(fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
  std::string text(most_bytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.size() > most_bytes) throw UsageError(fmt::format("{}: is too large for a file of options", file.string()));
  return text;
}

// Walks over the text before the parser proper does, which would keep the last of two equal keys in silence, nest
// without end, and speak of errors in its own words.
struct Watch : nlohmann::json_sax<Json> {
  Watch(const std::string& file, std::string_view text) : file(file), text(text) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool start_object(size_t) override { return deeper(); }
  bool start_array(size_t) override { return deeper(); }
  bool end_object() override { return --depth, true; }
  bool end_array() override { return --depth, true; }

  bool key(std::string& name) override {
    if (depth != 1) return true;
    std::replace(name.begin(), name.end(), '_', '-');
    if (!seen.insert(name).second)
      throw UsageError(fmt::format("{}: key {} stands there twice; keep one", file, printable(name)));
    return true;
  }

  bool parse_error(size_t position, const std::string& token, const nlohmann::detail::exception& e) override {
    constexpr int number_overflow = 406;  // nlohmann's number of it
    constexpr size_t shown = 20;
    const std::string_view before = text.substr(0, position > 0 ? position - 1 : 0);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t column = before.size() - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
    const std::string at = fmt::format("{}: line {}, column {}", file, line, column);
    if (e.id == number_overflow) throw UsageError(fmt::format("{}: {} is a number too large", at, printable(token)));
    if (position > text.size()) throw UsageError(fmt::format("{}: the JSON ends before it is complete", at));
    const std::string_view rest = text.substr(before.size(), shown);
    throw UsageError(fmt::format("{}: not strict JSON at \"{}\"", at, printable(rest.substr(0, rest.find('\n')))));
  }

 private:
  bool deeper() {
    if (++depth > most_depth) throw UsageError(fmt::format("{}: nests deeper than options do", file));
    return true;
  }

  const std::string& file;
  std::string_view text;
  std::set<std::string> seen;
  size_t depth = 0;
};

Json parse(const std::string& file, const std::string& text) {
  Watch watch(file, text);
  Json::sax_parse(text, &watch);
  Json document = Json::parse(text);
  if (document.is_object()) return document;
  throw UsageError(fmt::format("{}: needs a JSON object such as {{\"lr\": 0.01}}", file));
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
         std::holds_alternative<std::vector<double> Config::*>(option.member) ||
         std::holds_alternative<std::vector<Target> Config::*>(option.member);
}

}  // namespace

void read_config_file(Config& config, const std::filesystem::path& file) {
  const Json document = parse(file.string(), read_text(file));
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
    if (option && (option->name == std::string_view("config") || option->name == std::string_view("resume")))
      throw UsageError(fmt::format("{}: {} belongs on the command line; leave it out", file.string(), option->name));
    if (!option)
      throw UsageError(fmt::format("{}: unknown key {}; the nearest is {}", file.string(), printable(key),
                                   nearest_option(key, command)));
    const bool has_origin = entry.is_object() && entry.contains("value");
    const Json& value = has_origin ? entry["value"] : entry;
    if (value.is_null() && std::holds_alternative<std::string Config::*>(option->member)) continue;  // not given
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
