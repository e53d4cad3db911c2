// From the options of `tapedeck sweep` to what its plan goes by.
#pragma once
#include "apps/problem.h"
#include "apps/sweep/sweep_state.h"

namespace tapedeck {

// Throws UsageError: a size that the training split has not, or that --accumulate does not divide, a schedule that
// knows its end without --horizon, rates given twice, …
SweepSettings sweep_settings(const Config& config, const Problem& problem);

}  // namespace tapedeck
