// What a change does to one model: its outputs against those in f64, and what it decides. Both sides and the reference
// have the same weights and see the same examples, so that nothing but the change makes a difference.
//   error       ‖y − y64‖ / ‖y64‖ over all outputs
//   decisions   the share of examples (of sequences: tokens) whose largest output is the same, and where it is not, how
//               near the two candidates were: the margin is what the first side's choice leads the other's by, over
//               the outputs' root mean square
#pragma once
#include <optional>

#include "apps/experiment.h"

namespace tapedeck {

struct OutputError {
  double relative;
  // What is usual for the precision. Above it something is wrong, below it the numbers were not rounded as they should
  // have been: an fp16 side that computes in fp32, say.
  double low, high;
  bool unusual() const { return !(low <= relative && relative <= high); }
};
OutputError output_error(double relative, const Config& config);

struct OutputComparison {
  int64_t examples, outputs;  // that were looked at, and numbers they have in all
  OutputError a, b;
  std::optional<double> same;  // share of equal decisions; none for numbers to predict
  int64_t decisions = 0, different = 0;
  std::optional<double> median_margin, largest_margin;  // of the different ones
};

// Fills in the shares and margins of outputs, `choices` numbers for each decision.
void compare_decisions(OutputComparison& result, const std::vector<double>& a, const std::vector<double>& b,
                       int64_t choices);

// Options that say which function of which examples a model computes, and not how: empty where both sides have the
// same, else "activation relu / tanh". Outputs that differ for such a reason say nothing about a precision or a device.
std::string other_function(const Config& a, const Config& b);

// `weights`: of a trained model, as ParameterSet::values() of side a lays them out. None where the sides compute other
// functions. Throws what building and running a model throws.
std::optional<OutputComparison> compare_outputs(const Config& a, const Config& b, const std::vector<double>& weights);

}  // namespace tapedeck
