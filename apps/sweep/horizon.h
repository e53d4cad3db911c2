// Fixed horizons, for schedules that know their end: of a decayed rate no passage in the middle of a run means
// anything, so each number of steps K is a run of its own, and the steps that a size needs are the smallest K whose
// mean validation metric over the seeds passes the target with p < 0.01 (one-sided, Student's t). K is looked for on a
// grid of √2, up or down from what the pilot says; the answer is the interval (largest K below that failed, smallest
// that passed].
#pragma once
#include <optional>

#include "apps/sweep/tuning.h"

namespace tapedeck {

struct HorizonTrial {
  int64_t steps;
  int n = 0;        // without failed runs
  double mean = 0;  // of the metric at the last step, at its worst where one diverged
  double p = 1;     // that it passes by chance
  bool passes() const { return p < 0.01; }
};

struct HorizonSearch {
  std::vector<Cell> needed;  // not empty: the search is not at its end
  Tuning tuned;              // at the first K
  std::vector<HorizonTrial> trials;
  std::optional<int64_t> passed;  // none: no K that was tried passes
  int64_t failed = 0;             // the next smaller one on the grid, or the largest that was tried
  std::vector<Cell> runs;         // of the K that passed, or of the largest
};
HorizonSearch horizon_search(const SweepState& state, int64_t batch);

// The metric of the last evaluation; of a run that diverged none.
std::optional<double> final_metric(const CellResult& result, const Target& target);

HorizonTrial judge_horizon(int64_t steps, std::span<const double> metrics, const Target& target);

}  // namespace tapedeck
