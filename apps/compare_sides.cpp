#include "apps/compare_sides.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

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

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  bool inside = false;
  char quote = 0;
  for (const char c : text) {
    if (quote ? c == quote : c == '"' || c == '\'') {
      quote = quote ? 0 : c;
      if (!inside) words.emplace_back(), inside = true;
    } else if (c == ' ' && !quote) {
      inside = false;
    } else {
      if (!inside) words.emplace_back(), inside = true;
      words.back() += c;
    }
  }
  return words;
}

std::vector<Setting> settings_of(const std::string& text, const char* side) {
  std::vector<Setting> out;
  const std::vector<std::string> words = words_of(text);
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
    if (equals != std::string::npos)
      out.push_back({option->name, words[i].substr(equals + 1)});
    else if (option->is_flag())
      out.push_back({option->name, "true"});
    else
      out.push_back({option->name, i + 1 < words.size() ? words[++i] : ""});
  }
  return out;
}

// Flags of the command line that hold for both sides, but for those that one side says itself.
std::vector<Setting> shared_settings(const Config& config, const std::vector<Setting>& own) {
  std::vector<Setting> out;
  for (const Option& option : all_options()) {
    const bool said = std::any_of(own.begin(), own.end(), [&](const Setting& s) { return s.option == option.name; });
    const bool both = (option.commands & command_bit("train")) && (option.commands & command_bit("compare"));
    if (both && !said && config.origin(option.name) == Origin::flag)
      out.push_back({option.name, value_text(config, option)});
  }
  return out;
}

Config side(const Config& config, const std::string& text, const char* name, const char* data) {
  const bool is_run = std::filesystem::exists(std::filesystem::path(text) / "config.json");
  const std::vector<Setting> own = is_run ? std::vector<Setting>() : settings_of(text, name);
  std::vector<Setting> all = shared_settings(config, own);
  if (is_run) all.push_back({"config", (std::filesystem::path(text) / "config.json").string()});
  all.insert(all.end(), own.begin(), own.end());
  const auto said = [&](const char* option) {
    return std::any_of(all.begin(), all.end(), [&](const Setting& s) { return s.option == option; });
  };
  if (data && !is_run && !said("data")) all.push_back({"data", data});
  // Both sides train equally long, where nobody says for how long: a target would end them at different steps.
  if (!is_run && !said("data") && !said("epochs") && !said("steps")) all.push_back({"epochs", "20"});
  try {
    return configure("train", all);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("side {} ({}): {}", name, text, error.what()));
  }
}

// Options that differ though neither side named them.
std::vector<std::string> other_differences(const Config& a, const Config& b, const std::set<std::string>& named) {
  std::vector<std::string> out;
  const std::set<std::string> harmless = {"config", "out", "note", "threads"};
  for (const Option& option : all_options()) {
    if (!(option.commands & command_bit("train")) || named.contains(option.name) || harmless.contains(option.name))
      continue;
    const std::string of_a = value_text(a, option), of_b = value_text(b, option);
    if (of_a != of_b)
      out.push_back(fmt::format("{} {} / {}", option.name, of_a.empty() ? "none" : of_a, of_b.empty() ? "none" : of_b));
  }
  if (a.threads != b.threads && !named.contains("threads"))
    out.push_back(fmt::format("threads {} / {}", a.threads, b.threads));
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
  Sides sides{side(config, a, "a", data),
              side(config, b, "b", data),
              a.empty() ? "(defaults)" : a,
              b.empty() ? "(defaults)" : b,
              {}};
  std::set<std::string> named;
  for (const std::string& text : {a, b})
    if (!std::filesystem::exists(std::filesystem::path(text) / "config.json"))
      for (const Setting& s : settings_of(text, "a")) named.insert(s.option);
  sides.differences = other_differences(sides.a, sides.b, named);
  return sides;
}

}  // namespace tapedeck
