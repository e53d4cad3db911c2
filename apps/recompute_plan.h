// --recompute budget=SIZE: what a model makes again in backward, so that what it saves for backward fits.
#pragma once
#include <string>

#include "apps/experiment.h"

namespace tapedeck {

struct RecomputePlan {
  std::vector<size_t> ways;         // to save, of each piece of the model: see Network
  size_t budget, saved, saved_all;  // bytes: allowed, with the plan, and without recomputation
  double counted;                   // what is computed again, in FLOP, over those of a step
  std::string pieces;               // "blocks 0–3: norms and gelu; 4–11: nothing"
};

// The cheapest plan by count, so that the same configuration has the same plan on every machine. Throws UsageError with
// the least possible size where the budget cannot be met.
RecomputePlan plan_recompute(const Config& config, const Problem& problem, Device device);

// What computing again takes of the seconds of forward and backward, measured on a few made-up examples.
struct RecomputeTime {
  double share;
  int64_t batch;
};
RecomputeTime measure_recompute(const Config& planned, const Problem& problem, Device device);

std::string plan_text(const RecomputePlan& plan, const RecomputeTime& time);

// With the plan where the configuration asks for a budget, said on stderr unless quiet; else as it is. Throws
// UsageError where the model has fewer parts than a segment is to have.
Config with_recompute_planned(const Config& config, const Problem& problem, Device device);

}  // namespace tapedeck
