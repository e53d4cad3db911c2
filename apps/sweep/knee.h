// The knee of a learning curve: where further steps begin to bring little. With x the share of the steps and y the
// share of the fall of the loss (as its lowest so far) that is still to come, the curve runs from (0, 1) to (1, 0), and
// the knee is where it lies farthest below that line: where x + y is least  [Satopää et al. 2011, Kneedle, ICDCSW]. A
// target is chosen just behind it: on the plateau the step of the crossing would be noise.
#pragma once
#include <span>
#include <vector>

#include "apps/sweep/cell.h"

namespace tapedeck {

// The step of the knee; the last step where the curve never bends that way. Needs a curve that falls: throws Error
// where the lowest loss is the first, or fewer than 8 evaluations are finite.
int64_t knee_step(std::span<const EvaluationPoint> curve);

// Losses that the curve has at these multiples of the knee's step, rounded up to 2 digits, each lower than the one
// before; those that round to the same are one.
std::vector<double> losses_behind_knee(std::span<const EvaluationPoint> curve, std::span<const double> multiples);

}  // namespace tapedeck
