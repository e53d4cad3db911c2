// Where a sweep with time left should run once more: at the size that makes log B_crit surer the most for its seconds.
// With J = (1, w), w = B_crit/(B + B_crit), the derivatives of log S by (log Smin, log B_crit), the runs so far know
// M = Σ JJᵀ of them, and the variance of log B_crit is σ²·(M⁻¹)₂₂; a further run at B adds its JJᵀ.
#pragma once
#include <optional>

#include "apps/sweep/sweep_result.h"

namespace tapedeck {

// One more run, with the next seed of its size; none where there is no law to go by.
std::optional<Cell> extra_cell(const SweepState& state);

}  // namespace tapedeck
