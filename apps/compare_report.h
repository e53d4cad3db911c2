// What `tapedeck compare` says: outputs, decisions and training of two configurations, and a verdict of two lines.
#pragma once
#include <string>
#include <vector>

#include "apps/compare_outputs.h"
#include "apps/stats.h"
#include "apps/summary.h"

namespace tapedeck {

struct Comparison {
  std::string a, b;                           // what was named on the command line
  std::vector<std::string> differences = {};  // other options in which the two differ, "lr 0.001 / 0.01"
  std::optional<OutputComparison> outputs = {};
  std::vector<Summary> runs_a = {}, runs_b = {};  // of the same seeds, in their order
};

// The metric of validation that the two are judged by: accuracy where both have one, else loss.
struct MetricComparison {
  std::string name;
  std::vector<double> a, b;                     // of the seeds that ended well on both sides
  std::optional<double> difference, low, high;  // mean of b − a, and Student's 95 % interval from two pairs on
  bool within_spread() const { return low && *low <= 0 && 0 <= *high; }
};
MetricComparison compare_metric(const Comparison& comparison);

// Step times, medians of each run, b / a.
std::optional<RatioInterval> compare_steps(const Comparison& comparison);

std::string compare_report(const Comparison& comparison);
Json compare_json(const Comparison& comparison);

}  // namespace tapedeck
