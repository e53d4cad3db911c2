// Text to value and back. Strict: the whole text must be one plain decimal number (no sign of plus, no space, no hex,
// no nan or inf), within its range; lists have no empty part.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/options.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

struct Refused {};  // thrown by the parsers below; set_value makes the sentence

bool within(const Range& range, double x) {
  return std::isfinite(x) && (range.low_open ? x > range.low : x >= range.low) &&
         (range.high_open ? x < range.high : x <= range.high);
}

template <class Number>  // int64_t or double
Number parse_number(std::string_view text, const Range& range) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !within(range, static_cast<double>(value)))
    throw Refused{};
  return value;
}

// f of each part between commas.
template <class F>
void for_each_part(std::string_view text, const F& f) {
  for (size_t comma = 0; comma != text.npos;) {
    comma = text.find(',');
    f(text.substr(0, comma));
    if (comma != text.npos) text.remove_prefix(comma + 1);
  }
}

// "8..1024" stands for 8, 16, 32 … 1024.
void add_doublings(std::vector<int64_t>& values, std::string_view text, size_t dots, const Range& range) {
  const auto first = parse_number<int64_t>(text.substr(0, dots), range);
  const auto last = parse_number<int64_t>(text.substr(dots + 2), range);
  if (first < 1 || last < first) throw Refused{};
  for (int64_t value = first;; value *= 2) {
    values.push_back(value);
    if (value > last / 2) return;
  }
}

std::vector<int64_t> parse_list(std::string_view text, const Range& range) {
  std::vector<int64_t> values;
  for_each_part(text, [&](std::string_view part) {
    if (const size_t dots = part.find(".."); dots != part.npos)
      add_doublings(values, part, dots, range);
    else
      values.push_back(parse_number<int64_t>(part, range));
  });
  return values;
}

std::vector<double> parse_numbers(std::string_view text, const Range& range) {
  std::vector<double> values;
  for_each_part(text, [&](std::string_view part) { values.push_back(parse_number<double>(part, range)); });
  return values;
}

double parse_time(std::string_view text, const Range& range) {
  double unit = 0;
  for (const auto& [name, seconds] : {std::pair<std::string_view, double>{"min", 60}, {"h", 3600}, {"s", 1}})
    if (text.ends_with(name)) {
      text.remove_suffix(name.size());
      unit = seconds;
      break;
    }
  const double seconds = parse_number<double>(text, {}) * unit;  // without a unit: 0, which no range has
  if (!within(range, seconds)) throw Refused{};
  return seconds;
}

int64_t parse_size(std::string_view text, const Range& range) {
  static constexpr struct {
    std::string_view unit;
    int64_t bytes;
  } kUnits[] = {{"KiB", 1ll << 10}, {"MiB", 1ll << 20}, {"GiB", 1ll << 30}, {"TiB", 1ll << 40},    {"KB", 1000},
                {"kB", 1000},       {"MB", 1000000},    {"GB", 1000000000}, {"TB", 1000000000000}, {"B", 1}};
  int64_t bytes_each = 1;
  for (const auto& [unit, bytes] : kUnits)
    if (text.ends_with(unit)) {
      text.remove_suffix(unit.size());
      bytes_each = bytes;
      break;
    }
  const double bytes = parse_number<double>(text, {}) * static_cast<double>(bytes_each);
  if (!within(range, bytes)) throw Refused{};
  return static_cast<int64_t>(bytes);
}

Target parse_target(std::string_view text) {
  if (text.starts_with("accuracy=")) return {"accuracy", parse_number<double>(text.substr(9), {0, 1, true})};
  if (text.starts_with("loss=")) return {"loss", parse_number<double>(text.substr(5), {.low = 0, .low_open = true})};
  throw Refused{};
}

std::vector<Target> parse_targets(std::string_view text) {
  std::vector<Target> values;
  for_each_part(text, [&](std::string_view part) { values.push_back(parse_target(part)); });
  return values;
}

Recompute parse_recompute(std::string_view text) {
  using Kind = Recompute::Kind;
  if (text == "none") return {};
  if (text == "blocks") return {Kind::blocks};
  if (text.starts_with("every=")) return {Kind::every, parse_number<int64_t>(text.substr(6), {1, 1e6})};
  if (text.starts_with("budget=")) return {Kind::budget, parse_size(text.substr(7), {1, 1e15})};
  throw Refused{};
}

bool parse_flag(std::string_view text) {
  if (text != "true" && text != "false") throw Refused{};
  return text == "true";
}

std::string parse_text(std::string_view text, std::string_view choices) {
  if (text.empty()) throw Refused{};
  if (choices.empty()) return std::string(text);
  for (std::string_view rest = choices; !rest.empty();) {
    const size_t end = std::min(rest.find('|'), rest.size());
    if (text == rest.substr(0, end)) return std::string(text);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  throw Refused{};
}

std::string range_text(const Range& range) {
  const bool below = std::isfinite(range.high);
  if (!std::isfinite(range.low)) return below ? fmt::format(" up to {}", range.high) : "";
  if (!below) return fmt::format("{} {}", range.low_open ? " above" : " of at least", range.low);
  if (range.low_open && range.high_open) return fmt::format(" between {} and {}, both excluded", range.low, range.high);
  if (range.low_open) return fmt::format(" above {} and at most {}", range.low, range.high);
  return fmt::format(" from {} to {}{}", range.low, range.high_open ? "below " : "", range.high);
}

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace

void set_value(Config& config, const Option& option, std::string_view text, std::string_view where) {
  const Range& range = option.range;
  try {
    std::visit(
        Overloaded{
            [&](bool Config::*m) { config.*m = parse_flag(text); },
            [&](int64_t Config::*m) { config.*m = parse_number<int64_t>(text, range); },
            [&](double Config::*m) { config.*m = parse_number<double>(text, range); },
            [&](std::string Config::*m) { config.*m = parse_text(text, option.choices); },
            [&](std::vector<int64_t> Config::*m) { config.*m = parse_list(text, range); },
            [&](std::vector<std::string> Config::*m) { (config.*m).push_back(parse_text(text, option.choices)); },
            [&](std::vector<double> Config::*m) { config.*m = parse_numbers(text, range); },
            [&](std::vector<Target> Config::*m) { config.*m = parse_targets(text); },
            [&](std::optional<double> Config::*m) {
              config.*m =
                  option.form == Option::Form::time ? parse_time(text, range) : parse_number<double>(text, range);
            },
            [&](std::optional<Target> Config::*m) { config.*m = parse_target(text); },
            [&](Recompute Config::*m) { config.*m = parse_recompute(text); },
            [&](std::optional<int64_t> Config::*m) {
              config.*m =
                  option.form == Option::Form::size ? parse_size(text, range) : parse_number<int64_t>(text, range);
            },
        },
        option.member);
  } catch (const Refused&) {
    const std::string got = text.empty() ? "has no value" : fmt::format("got \"{}\"", text);
    throw UsageError(fmt::format("{} {}, needs {}", where, got, allowed_values(option)));
  }
}

std::string allowed_values(const Option& option) {
  if (option.form == Option::Form::size)
    return fmt::format("a size{} bytes, such as 512MiB or 2GB", range_text(option.range));
  if (option.form == Option::Form::time) return "a time, such as 90s, 10min or 2h";
  if (!option.choices.empty()) {
    std::string list(option.choices);
    for (size_t bar; (bar = list.find('|')) != list.npos;) list.replace(bar, 1, ", ");
    return (list.find(',') == list.npos ? "" : "one of ") + list;
  }
  const std::string range = range_text(option.range);
  return std::visit(
      Overloaded{
          [&](bool Config::*) -> std::string { return "true or false"; },
          [&](std::string Config::*) -> std::string { return "some text"; },
          [&](std::vector<std::string> Config::*) -> std::string { return "some text"; },
          [&](double Config::*) { return "a number" + range; },
          [&](std::optional<double> Config::*) { return "a number" + range; },
          [&](int64_t Config::*) { return "a whole number" + range; },
          [&](std::optional<int64_t> Config::*) { return "a whole number" + range; },
          [&](std::vector<int64_t> Config::*) {
            return "whole numbers" + range + " with commas between, such as 512,512, or 8..1024";
          },
          [&](std::vector<double> Config::*) { return "numbers" + range + " with commas between, such as 0.01,0.02"; },
          [&](std::vector<Target> Config::*) -> std::string {
            return "accuracy=NUMBER above 0 and at most 1, or loss=NUMBER above 0, with commas between";
          },
          [&](Recompute Config::*) -> std::string {
            return "none, blocks, every=K (K blocks or hidden layers at a time) or budget=SIZE, such as "
                   "budget=512KiB";
          },
          [&](std::optional<Target> Config::*) -> std::string {
            return "accuracy=NUMBER above 0 and at most 1, or loss=NUMBER above 0";
          },
      },
      option.member);
}

Json value_json(const Config& config, const Option& option) {
  return std::visit(
      Overloaded{
          [&](std::string Config::*m) { return (config.*m).empty() ? Json() : Json(config.*m); },
          [&](Recompute Config::*m) { return Json(to_text(config.*m)); },
          [&](std::optional<Target> Config::*m) { return config.*m ? Json(to_text(*(config.*m))) : Json(); },
          [&](std::optional<double> Config::*m) {
            if (!(config.*m)) return Json();
            return option.form == Option::Form::time ? Json(fmt::format("{}s", *(config.*m))) : Json(*(config.*m));
          },
          [&](std::optional<int64_t> Config::*m) { return config.*m ? Json(*(config.*m)) : Json(); },
          [&](std::vector<Target> Config::*m) {
            std::string list;
            for (const Target& target : config.*m) list += (list.empty() ? "" : ",") + to_text(target);
            return list.empty() ? Json() : Json(list);
          },
          [&](std::vector<double> Config::*m) { return (config.*m).empty() ? Json() : Json(config.*m); },
          [&](auto Config::*m) { return Json(config.*m); },
      },
      option.member);
}

std::string value_text(const Config& config, const Option& option) {
  const Json value = value_json(config, option);
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {  // "[512,512]" without its brackets
    const std::string list = value.dump();
    return list.substr(1, list.size() - 2);
  }
  return value.is_number_float() ? fmt::format("{}", value.get<double>()) : value.dump();
}

}  // namespace tapedeck
