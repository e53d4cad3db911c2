// Fixed horizons, for schedules that know their end: of a decayed rate no passage in the middle of a run means
// anything, so each number of steps K is a run of its own, and the steps that a size needs are the smallest K whose
// mean validation metric over the seeds passes the target with p < 0.01 (one-sided, Student's t). K is looked for on a
// grid of √2, up or down from what the pilot says; the answer is the interval (largest K below that failed, smallest
// that passed].
//
// Each target has a search of its own, on one grid: a run is judged at its end, by any target, so that searches which
// come to the same K share its runs. The rate is that of the tightest target's first K for all of them.
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

struct TargetSearch {
  double target = 0;
  std::vector<Cell> needed = {};          // not empty: the search is not at its end, and has no `passed` nor `runs`
  std::vector<HorizonTrial> trials = {};  // by steps
  std::optional<int64_t> passed = {};     // none: no K that was tried passes
  int64_t failed = 0;                     // the next smaller one on the grid, or the largest that was tried
  std::vector<Cell> runs = {};            // of the K that passed, or of the largest

  bool ended() const { return needed.empty() && !runs.empty(); }
  std::string interval() const;  // "(28, 39]", "more than 512", "n/a"
};

struct HorizonSearch {
  std::vector<Cell> needed;           // of all targets, each once; not empty: the search is not at its end
  Tuning tuned;                       // at the first K
  std::vector<TargetSearch> targets;  // the tightest last
  const TargetSearch& tightest() const { return targets.back(); }
};
HorizonSearch horizon_search(const SweepState& state, int64_t batch);

// The tightest target's search once more, from the same K on, with other seeds.
TargetSearch search_again(const SweepState& state, int64_t batch, double rate);

// How far apart two searches for one target ended. Each has one interval of K for all of its runs, so that there is no
// interval of their ratio: they agree where the intervals overlap, and else lie some places of the grid apart.
struct HorizonDifference {
  int places = 0;         // of √2; above 0: the second needs more steps
  bool at_least = false;  // one of them passed at no K that was tried
  bool agree() const { return places == 0; }
};
// None: a search is not at its end or has no runs, or neither passed.
std::optional<HorizonDifference> difference(const TargetSearch& first, const TargetSearch& second);

// The metric of the last evaluation; of a run that diverged none.
std::optional<double> final_metric(const CellResult& result, const Target& target);

// By how many sample deviations of n runs their mean is to be better than the target: t₀.₉₉/√n. Of 3 it is 4.0, of 10
// 0.9.
double margin_to_pass(int n);

HorizonTrial judge_horizon(int64_t steps, std::span<const double> metrics, const Target& target);

}  // namespace tapedeck
