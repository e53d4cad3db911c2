// What the examples of a task look like: the names of its tokens, and questions with their answers.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/task_spec.h"

namespace tapedeck {

// The random numbers of one try at a row.
struct TaskDraw {
  uint32_t site;  // of the task
  int64_t row, attempt;
  int32_t operator()(int64_t i, int64_t n) const;  // the i-th of them, in [0, n)
};

struct TaskFormat {
  std::vector<std::string> names;  // of the tokens
  std::string form;                // of a question, for people: "8 symbols and ="
  int64_t question, answer;        // tokens of each
  double different;                // questions there are
  bool by_row = false;             // a row is a question of its own; else questions are drawn
  bool begins_again = false;       // a question's last token is its first
  std::function<void(const TaskDraw& draw, int32_t* out)> make;  // to out: question, then answer

  int64_t size() const { return question + answer; }
};

TaskFormat task_format(const TaskSpec& spec);

}  // namespace tapedeck
