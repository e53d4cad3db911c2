// "sort:length=12,symbols=20": which task, and its numbers.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck {

struct TaskParameter {
  std::string name;
  double least, most, fallback;
  bool whole = true;  // takes no fraction
};

struct TaskKind {
  std::string name, what;  // for people
  std::vector<TaskParameter> parameters;
};
std::span<const TaskKind> task_kinds();
std::string task_names();  // "copy, reverse, …"

std::string parameters(const TaskKind& kind);  // "length (a whole number from 1 to 256), …"

struct TaskSpec {
  const TaskKind* kind;
  std::vector<double> values;                           // one a parameter of the kind
  double operator[](std::string_view parameter) const;  // which the kind has
};

// Throws UsageError, naming what there is, for a task or parameter that is unknown, or a value outside its range.
TaskSpec parse_task(std::string_view spec);

}  // namespace tapedeck
