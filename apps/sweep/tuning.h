// The rate of a batch size: a grid of rates √2 apart, each tried with the same seeds, made longer while the best lies
// at an edge. First a rate is looked for that reaches the target, by one run each, from the grid's centre down and then
// up; what the others may take is twice its steps, and twice the best where the grid grows, since a rate that needs
// more is not the one that is looked for.
//
// With a fixed horizon all rates run for the same steps, and the figure is the loss at their end.
//
// A rate's figure is the median steps of its runs, infinite where most missed or diverged. The choice goes by the mean
// log over a rate (weight 2) and those of its neighbours (1 each) that reached the target: the lowest of a handful of
// noisy figures is lucky. At last the two rates 2^¼ beside the best are tried.
#pragma once
#include <optional>

#include "apps/sweep/sweep_state.h"

namespace tapedeck {

struct RateTrial {
  double rate;
  int n = 0, reached = 0, diverged = 0;
  double figure = 0;  // median steps, infinite where most did not reach the target; with a horizon, loss at its end
  double cap = 0;
};

struct Tuning {
  std::vector<Cell> needed;       // not empty: the tuning is not at its end
  std::vector<RateTrial> trials;  // by rate
  std::optional<double> rate;     // none: no rate reached the target
  std::string why_none;
  std::string edge;   // "low", "high": the best lies there and the grid has not grown any more
  double figure = 0;  // of the best; see RateTrial
};
Tuning tuning(const SweepState& state, int64_t batch);

}  // namespace tapedeck
