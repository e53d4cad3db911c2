// What the cells of a sweep say together: figures of each size, the law for each target, what the same size run
// twice differs by, and what the usual rules for the rate would have cost.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/scaling_fit.h"
#include "apps/stats.h"
#include "apps/sweep/horizon.h"
#include "apps/sweep/sweep_plan.h"

namespace tapedeck {

// A median over runs, those that missed being infinite, with its exact interval; none for n <= 5.
struct MedianFigure {
  double median;
  std::optional<MedianInterval> interval;
};

// What a rule would have cost at a size: the share of the tuned rate's steps in those that the rule's rate takes, by
// the trials on its grid, between two of them by interpolation in logs.
struct RuleCost {
  double rate;
  std::optional<double> efficiency;  // none: the rate lies outside of what was tried
  bool at_most = false;              // the rule's rate missed or diverged: it is this or less
};

struct SweepSize {
  int64_t batch = 0;
  Tuning tuned;
  std::vector<std::pair<Cell, CellResult>> runs;
  int n = 0, reached = 0, missed = 0, diverged = 0, failed = 0;  // n: without failed ones
  std::optional<MedianFigure> steps, examples, seconds;          // none for n = 0
  std::optional<double> running_time;                            // ERT
  std::optional<StepTimeSummary> step_ms;                        // medians over the runs; n: steps of all
  std::optional<MedianFigure> noise;                             // of those runs where it is resolved
  int noise_runs = 0;
  std::optional<RuleCost> linear, square_root;
  // Of a sweep with horizons: the runs, and what is counted of them, are those of the K that passed the tightest
  // target.
  std::optional<HorizonSearch> horizon;
};

struct TargetFit {
  double target;
  std::optional<ScalingFit> fit;
  std::string why_none;
};

struct RunsAgain {
  int64_t batch = 0;
  int n = 0, n_again = 0;  // runs that did not fail; with horizons n of each K
  int reached = 0, reached_again = 0;
  // Of its runs over those once more, by Welch's t; none unless all of them reached the target: without those that
  // missed, two equal sizes would look more alike, or less, than they are.
  std::optional<RatioInterval> steps, seconds;
  std::optional<TargetSearch> first, second;  // with horizons; n: the runs of each K
  std::optional<HorizonDifference> difference() const {
    return first && second ? tapedeck::difference(*first, *second) : std::nullopt;
  }
};

struct SweepResult {
  std::vector<SweepSize> sizes;
  std::vector<TargetFit> fits;  // the tightest last
  RunsAgain again;
  const TargetFit* tightest() const { return fits.empty() ? nullptr : &fits.back(); }
};

// `timed`: the cells ran one at a time, so that their seconds mean something. draws: of the bootstrap.
SweepResult conclude(const SweepState& state, bool timed, int draws = bootstrap_draws);

// A run as the law takes it.
ScalingRun scaling_run(const Cell& cell, const CellResult& result, const Target& target, bool timed);

}  // namespace tapedeck
