// The pilot: a few runs at the reference batch size with rates 4 times apart, beginning at --lr and going on to the
// side that is better until neither is; or one run with each of the given --rates. The best of them says around which
// rate to tune, how many steps a run takes, and, where nobody has said one, what the target is.
#pragma once
#include <optional>

#include "apps/sweep/sweep_state.h"

namespace tapedeck {

std::vector<Cell> pilot_cells_needed(const SweepState& state);

struct Pilot {
  Cell cell;
  const CellResult* result;
};
// Of those that have run, the first to reach the target, else the one of the lowest loss. Throws Error where all failed
// or diverged, OutOfMemory where that is why.
Pilot best_pilot(const SweepState& state);

// Given targets, or those at the knee of the pilot's curve: one just behind it (1.5 times its step); of three, one at
// half its step and one at 3 times as well. Throws Error where the pilot says too little.
Targets choose_targets(const SweepState& state);

// Steps that a run of this size may take to the target by what the pilot took: times B₀/B for sizes below the reference
// B₀, since perfect scaling is the most that a smaller batch may cost. Throws Error where the pilot did not reach it.
int64_t steps_by_pilot(const SweepState& state, int64_t batch, const Target& target);
int64_t steps_by_pilot(const SweepState& state, int64_t batch);  // to the tightest target

inline constexpr int64_t cap_factor = 4;  // how much longer than expected a run may take before it has missed

// Steps within which a run of this size is to reach the target, tuned or not: --steps, or cap_factor times as many.
int64_t first_cap(const SweepState& state, int64_t batch);

double grid_centre(const SweepState& state, int64_t batch);  // see SweepSettings::alpha

}  // namespace tapedeck
