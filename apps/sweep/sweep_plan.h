// Which cells a sweep needs next, as a function of its settings and of the results so far: the pilot, then the rates of
// all sizes, then the runs that count, in an order that is shuffled by the cells' names, so that a machine that grows
// slow or warm favours no size.
#pragma once
#include <optional>

#include "apps/sweep/horizon.h"

namespace tapedeck {

// Fixes the targets once they can be known. Empty: the sweep is complete. Throws Error where the pilot says that the
// target cannot be reached.
std::vector<Cell> cells_needed(SweepState& state);

// The runs of a size that count: with seed, seed + 1, …; none where no rate reached the target.
std::vector<Cell> runs_of(const SweepState& state, int64_t batch, const Tuning& tuned);

// The size that runs twice: the middle one of those with a rate, once all have been tuned; 0: none.
int64_t again_batch(const SweepState& state);
std::vector<Cell> runs_again(const SweepState& state);
std::optional<TargetSearch> horizon_again(const SweepState& state);  // with horizons: its search once more

}  // namespace tapedeck
