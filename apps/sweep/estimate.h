// How long a sweep is going to take: steps by the pilot, seconds a step by a few steps on throw-away examples.
#pragma once
#include <map>

#include "apps/problem.h"
#include "apps/sweep/sweep_state.h"

namespace tapedeck {

class Estimate {
 public:
  // Times steps at every size (the least of three, behind two that warm up) and one evaluation. The device's memory may
  // be too small for a size: it then has no time, and its cells are going to fail.
  Estimate(const Config& config, const Problem& problem, Device device, const SweepSettings& settings);

  double seconds(const SweepState& state, const Cell& cell) const;  // of a cell, once the pilot has run
  double remaining(const SweepState& state) const;                  // of all cells that are still to come

 private:
  std::map<int64_t, double> step_;  // seconds, by size
  double evaluation_ = 0;
};

int64_t planned_cells(const SweepState& state);  // as far as can be known: the grids may grow

}  // namespace tapedeck
