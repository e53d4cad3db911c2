// What the law means on the clock. A step of B examples takes a + c·B (step_cost.h), so a run takes
//
//   T(B) = (Smin + Emin/B)(a + c·B),   least at B* = √((a/c)·B_crit), where it is T* = (√(a·Smin) + √(c·Emin))².
//
// Where a step costs the same whatever its batch (c = 0), B* is infinite; where it costs nothing but its examples, 0.
#pragma once
#include <optional>

#include "apps/scaling_law.h"
#include "apps/step_cost.h"

namespace tapedeck {

struct TimeLaw {
  StepCost cost;                                    // seconds a step, fitted to the sizes' medians of seconds/steps
  size_t runs = 0, sizes = 0;                       // with seconds
  double smallest = 0, largest = 0;                 // of these sizes
  double best_batch = 0, best_seconds = 0;          // B*, T*; infinite or 0 at an end, see above
  double measured_batch = 0, measured_seconds = 0;  // the size of the least median of seconds,
  double predicted_there = 0;                       // and what the law says of it
  bool measured = false;                            // false: no size where most runs reached the target

  double seconds(const ScalingLaw& law, double batch) const { return law.steps(batch) * cost.at(batch); }
};

// None where fewer than two sizes have runs with seconds. Runs that missed say what a step takes, and count as infinite
// in the medians of seconds.
std::optional<TimeLaw> fit_time(std::span<const ScalingRun> runs, const ScalingLaw& law);

}  // namespace tapedeck
