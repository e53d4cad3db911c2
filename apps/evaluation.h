// How a model does on examples, in detail.
//   confusion[t][p] = examples of class t that were taken for p
//   recall[t] = confusion[t][t] / row sum,   precision[p] = confusion[p][p] / column sum
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/problem.h"

namespace tapedeck {

struct Evaluation {
  Score score;
  std::vector<std::vector<int64_t>> confusion;  // [class][predicted]; empty for numbers and sequences
  std::string predictions;                      // CSV; empty for sequences
};
Evaluation evaluate(const Problem& problem, const Model& model, std::span<const int32_t> rows);

struct ClassScore {
  int64_t examples = 0;
  std::optional<double> recall, precision;  // none where there is nothing to divide by
};
std::vector<ClassScore> class_scores(const std::vector<std::vector<int64_t>>& confusion);

std::string class_name(const Dataset& data, size_t id);
std::string confusion_table(const Evaluation& result, const Dataset& data);

}  // namespace tapedeck
