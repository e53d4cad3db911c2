#include "data/task_spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "data/nearest.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  return list;
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const TaskKind& kind : task_kinds()) names.push_back(kind.name);
  return names;
}

std::string range(const TaskParameter& p) {
  return text("{} ({} from {} to {})", p.name, p.whole ? "a whole number" : "a number", p.least, p.most);
}

// Takes what stands before the mark off the rest, and the mark.
std::string_view take_until(std::string_view& rest, char mark) {
  const std::string_view part = rest.substr(0, rest.find(mark));
  rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  return part;
}

const TaskKind& find_task(std::string_view name) {
  for (const TaskKind& kind : task_kinds())
    if (kind.name == name) return kind;
  throw UsageError(
      text("task:{}: no such task; did you mean {}? There are {}", name, nearest(name, names()), task_names()));
}

double number(const TaskParameter& p, std::string_view word, std::string_view spec) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !(value >= p.least && value <= p.most) ||
      (p.whole && value != std::floor(value)))
    throw UsageError(text("task:{}: {}={} is not {}", spec, p.name, word, range(p)));
  return value;
}

}  // namespace

std::span<const TaskKind> task_kinds() {
  const TaskParameter length = {"length", 1, 256, 8}, symbols = {"symbols", 2, 62, 10};
  static const TaskKind kinds[] = {
      {"copy", "says a string again", {length, symbols}},
      {"reverse", "says a string backwards", {length, symbols}},
      {"sort", "puts the symbols of a string in order", {length, symbols}},
      {"addition", "adds two numbers, the sum's last digit first", {{"digits", 2, 9, 3}}},
      {"modadd",
       "a + b modulo p: all pairs, of which a share trains",
       {{"p", 11, 499, 97}, {"train", 0.05, 0.95, 0.4, false}}},
      {"induction", "goes on with a string that has begun again", {{"length", 2, 256, 16}, {"symbols", 2, 62, 16}}},
  };
  return kinds;
}

std::string task_names() { return joined(names()); }

std::string parameters(const TaskKind& kind) {
  std::vector<std::string> ranges;
  for (const TaskParameter& p : kind.parameters) ranges.push_back(range(p));
  return joined(ranges);
}

double TaskSpec::operator[](std::string_view parameter) const {
  for (size_t i = 0; i < values.size(); ++i)
    if (kind->parameters[i].name == parameter) return values[i];
  CHECK(false, "task {}: has no parameter {}", kind->name, parameter);
  return 0;
}

TaskSpec parse_task(std::string_view spec) {
  std::string_view rest = spec;
  TaskSpec task{.kind = &find_task(take_until(rest, ':')), .values = {}};
  const std::vector<TaskParameter>& known = task.kind->parameters;
  std::vector<bool> given(known.size());
  for (const TaskParameter& p : known) task.values.push_back(p.fallback);
  if (const char mark = spec.back(); mark == ':' || mark == ',')
    throw UsageError(text("data \"task:{}\": ends in \"{}\"; leave it away, or go on with a parameter: {}", spec,
                          std::string(1, mark), parameters(*task.kind)));
  while (!rest.empty()) {
    std::string_view word = take_until(rest, ',');
    const std::string_view name = take_until(word, '=');
    const auto found = std::find_if(known.begin(), known.end(), [&](const TaskParameter& p) { return p.name == name; });
    if (found == known.end())
      throw UsageError(text("task:{}: \"{}\" is no parameter of {}, which has {}", spec, name, task.kind->name,
                            parameters(*task.kind)));
    const auto i = static_cast<size_t>(found - known.begin());
    if (given[i]) throw UsageError(text("task:{}: {} is given twice", spec, name));
    given[i] = true;
    task.values[i] = number(*found, word, spec);
  }
  return task;
}

}  // namespace tapedeck
