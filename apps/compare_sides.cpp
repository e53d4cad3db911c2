#include "apps/compare_sides.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "apps/config_file.h"
#include "apps/options.h"
#include "engine/check.h"
#include "engine/device.h"

namespace tapedeck {
namespace {

struct Preset {
  const char* name;
  std::string a, b;
  const char* data;  // null: whatever is asked for
};

Preset find_preset(const std::string& name) {
  const std::string other = why_no_cuda().empty() ? "cuda" : "emulated";
  if (name == "precision") return {"precision", "--precision fp32", "--precision bf16", nullptr};
  if (name == "device") return {"device", "--device cpu", "--device " + other, nullptr};
  if (name == "recompute") return {"recompute", "--recompute none", "--recompute blocks", nullptr};
  if (name == "fused") return {"fused", "--attention composed", "--attention fused", "task:sort"};
  return {"graph", "--device " + other + " --graph off", "--device " + other + " --graph on", nullptr};
}

std::vector<std::string> words_of(const std::string& text, const char* side) {
  std::vector<std::string> words;
  bool inside = false;
  char quote = 0;
  for (const char c : text) {
    if (quote ? c == quote : c == '"' || c == '\'') {
      quote = quote ? 0 : c;
      if (!inside) words.emplace_back(), inside = true;
    } else if (!quote && std::isspace(static_cast<unsigned char>(c))) {
      inside = false;
    } else {
      if (!inside) words.emplace_back(), inside = true;
      words.back() += c;
    }
  }
  if (quote) throw UsageError(fmt::format("--{}: {} opens in \"{}\" and does not close; add one", side, quote, text));
  return words;
}

std::vector<Setting> settings_of(const std::string& text, const char* side) {
  std::vector<Setting> out;
  const std::vector<std::string> words = words_of(text, side);
  for (size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--"))
      throw UsageError(
          fmt::format("--{}: \"{}\" is no option of train, nor is \"{}\" the folder of a run; say \"--option "
                      "value\"",
                      side, words[i], text));
    const size_t equals = words[i].find('=');
    const std::string name = words[i].substr(2, equals == std::string::npos ? equals : equals - 2);
    const Option* const option = find_option(name, command_bit("train"));
    if (!option)
      throw UsageError(fmt::format("--{}: unknown option --{}; the nearest is --{}", side, name,
                                   nearest_option(name, command_bit("train"))));
    if (!(option->commands & command_bit("compare")))
      throw UsageError(
          fmt::format("--{}: --{} is of one run, and a side stands for several; leave it out", side, name));
    if (option->name == std::string_view("seed") || option->resume == Option::OnResume::own)
      throw UsageError(fmt::format("--{}: --{} holds for both sides; say it beside them", side, name));
    if (equals != std::string::npos)
      out.push_back({option->name, words[i].substr(equals + 1)});
    else if (option->is_flag())
      out.push_back({option->name, "true"});
    else
      out.push_back({option->name, i + 1 < words.size() ? words[++i] : ""});
  }
  return out;
}

bool is_run(const std::string& side) { return std::filesystem::exists(std::filesystem::path(side) / "config.json"); }

// Whether an option that stands beside the sides may hold for them, and for one that is a run.
bool holds_for_both(const Option& option) {
  return (option.commands & command_bit("train")) && (option.commands & command_bit("compare")) &&
         option.resume != Option::OnResume::own && option.name != std::string_view("seed");
}
bool holds_for_run(const Option& option) { return option.resume == Option::OnResume::free; }

// What the command line and the environment say for both sides, but for what a side says itself.
std::vector<Setting> shared_settings(const Config& config, const std::vector<Setting>& own, bool for_run) {
  std::vector<Setting> out;
  for (const Option& option : all_options()) {
    const bool said = std::any_of(own.begin(), own.end(), [&](const Setting& s) { return s.option == option.name; });
    if (holds_for_both(option) && !said && (!for_run || holds_for_run(option)) &&
        config.origin(option.name) >= Origin::environment)
      out.push_back({option.name, value_text(config, option)});
  }
  return out;
}

// The options that these settings name, and those that a file named by --config among them does.
std::set<std::string, std::less<>> named_by(const std::vector<Setting>& settings) {
  std::set<std::string, std::less<>> names;
  for (const Setting& s : settings) {
    names.insert(s.option);
    if (s.option != "config") continue;
    Config file;
    file.command = "train";
    read_config_file(file, s.value);
    for (const auto& [name, origin] : file.origins) names.insert(name);
  }
  return names;
}

Config side(const Config& config, const std::string& text, const char* name, const char* data) try {
  std::vector<Setting> all;
  if (is_run(text)) {
    run_config(text);  // refuses one that does not say what model it is of
    all = shared_settings(config, {}, true);
    all.push_back({"config", (std::filesystem::path(text) / "config.json").string()});
  } else {
    const std::vector<Setting> own = settings_of(text, name);
    all = shared_settings(config, own, false);
    all.insert(all.end(), own.begin(), own.end());
    const auto said = named_by(all);
    if (data && !said.contains("data")) all.push_back({"data", data});
    // Both sides train equally long, where nobody says for how long: a target would end them at different steps.
    if (!data && !said.contains("data") && !said.contains("epochs") && !said.contains("steps"))
      all.push_back({"epochs", "20"});
  }
  return configure("train", all);
} catch (const UsageError& error) {
  const std::string what = error.what();
  throw UsageError(what.starts_with("--a:") || what.starts_with("--b:")
                       ? what
                       : fmt::format("side {} ({}): {}", name, text.empty() ? "defaults" : text, what));
}

std::string shown(const Config& config, const Option& option) {
  if (option.name == std::string_view("device") && config.device == "auto")  // a run has recorded what that was
    return why_no_cuda().empty() ? "cuda" : "cpu";
  const std::string value = value_text(config, option);
  return value.empty() ? "none" : value;
}

// Options that differ though neither side named them, but for what compare takes no notice of.
std::vector<std::string> other_differences(const Config& a, const Config& b, const std::set<std::string>& named) {
  std::vector<std::string> out;
  for (const Option& option : all_options()) {
    if (!holds_for_both(option) || option.of_one_run || named.contains(option.name)) continue;
    const std::string of_a = shown(a, option), of_b = shown(b, option);
    if (of_a != of_b) out.push_back(fmt::format("{} {} / {}", option.name, of_a, of_b));
  }
  return out;
}

}  // namespace

Sides compare_sides(const Config& config) {
  std::string a = config.side_a, b = config.side_b;
  const char* data = nullptr;
  if (!config.preset.empty()) {
    const Preset preset = find_preset(config.preset);
    if (a.empty()) a = preset.a;
    if (b.empty()) b = preset.b;
    data = preset.data;
  }
  if (a.empty() && b.empty())
    throw UsageError(
        "compare needs two sides: --a \"OPTIONS\" --b \"OPTIONS\", or a preset such as `tapedeck compare precision`");
  if (is_run(a) && is_run(b))
    for (const Option& option : all_options())
      if (holds_for_both(option) && !holds_for_run(option) && config.origin(option.name) == Origin::flag)
        throw UsageError(
            fmt::format("--{}: both sides are runs, whose own options hold; leave it out, or write a side as options",
                        option.name));
  Sides sides{side(config, a, "a", data),
              side(config, b, "b", data),
              a.empty() ? "(defaults)" : a,
              b.empty() ? "(defaults)" : b,
              {}};
  std::set<std::string> named;
  for (const std::string& text : {a, b})
    if (!is_run(text))
      for (const Setting& s : settings_of(text, "a")) named.insert(s.option);
  sides.differences = other_differences(sides.a, sides.b, named);
  return sides;
}

}  // namespace tapedeck
