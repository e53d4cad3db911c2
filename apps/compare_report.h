// What `tapedeck compare` says: outputs, decisions and training of two configurations, and a verdict of two lines.
#pragma once
#include <cmath>
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
  std::string no_outputs = "the two models have other parameters or outputs";  // why there is none
  std::vector<Summary> runs_a = {}, runs_b = {};                               // of the same seeds, in their order
};

// The metric of validation that the two are judged by: accuracy where both have one, else loss.
struct MetricComparison {
  std::string name;
  std::vector<double> a, b;                                        // of the seeds that ended well on both sides
  std::optional<double> difference;                                // mean of b − a
  std::optional<MeanInterval> interval;                            // of it, from two seeds on
  std::optional<double> spread;                                    // the larger of the two deviations over seeds
  bool shown() const { return interval && !interval->covers(0); }  // else "no difference shown"
  bool within_spread() const { return spread && std::abs(*difference) <= *spread; }
};
MetricComparison compare_metric(const Comparison& comparison);

// Step times of the seeds that ended well on both sides: the median of each run, and b / a from two pairs on.
struct StepComparison {
  std::vector<double> a, b;          // milliseconds
  int64_t steps_a = 0, steps_b = 0;  // in all
  std::optional<RatioInterval> ratio;
};
StepComparison compare_steps(const Comparison& comparison);

std::string compare_report(const Comparison& comparison);
Json compare_json(const Comparison& comparison);

}  // namespace tapedeck
