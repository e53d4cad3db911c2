// What a step of B examples takes: τ(B) = a + c·B. a is paid once a step, whatever the batch (asking for kernels,
// waking threads, the optimizer), c for each example. So an example costs c + a/B: half of a step of a/c examples is
// overhead, and no batch makes an example cheaper than c, the floor.
#pragma once
#include <span>

namespace tapedeck {

struct StepCost {
  double fixed, per_example;  // a, c, in the unit of the times
  double at(double batch) const { return fixed + per_example * batch; }
  // The batch of which half is overhead; infinity where examples cost nothing.
  double balance() const;
};

// The least squares of the relative errors, Σ ((a + c·B)/τ − 1)²: a fit to the times themselves would see the largest
// batches alone. Neither a nor c is below 0. Needs two different batch sizes, and times above 0.
StepCost fit_step_cost(std::span<const double> batches, std::span<const double> times);

}  // namespace tapedeck
