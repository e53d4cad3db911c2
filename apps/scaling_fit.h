// Everything that `tapedeck fit` finds out of runs of several batch sizes: rows by size, the law, B_crit and how sure
// it is, the clock, and what to be wary of. scaling_report.h says it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/scaling_bootstrap.h"
#include "apps/scaling_runs.h"
#include "apps/scaling_time.h"

namespace tapedeck {

struct SizeRow {
  double batch;
  int n, reached;
  double median;                   // steps, or cost, of the evaluation at the target; infinite: most runs missed
  std::optional<Bounds> interval;  // exact 95 % interval of the median; none for n <= 5
  double fitted;                   // the law's
  std::optional<double> residual;  // log(median/fitted), of the middles of intervals; none where most runs missed
  // Seconds to the target, those of runs that missed infinite; none unless all of them are known.
  std::optional<double> seconds = std::nullopt;
  std::optional<Bounds> seconds_interval = std::nullopt;
};

struct ScalingFit {
  ScalingRuns data;
  uint64_t seed = 1;
  std::vector<SizeRow> rows;
  ScalingLaw law;
  Bootstrap bootstrap;
  std::optional<Bounds> left_out;  // B_crit as each size is left out
  Bracket sides;
  double lack_of_fit = 0;             // rms of the rows' residuals
  std::vector<std::string> why_poor;  // reasons to call B_crit poorly determined
  std::optional<TimeLaw> time;

  int reached() const;
  std::string verdict() const;                // "determined", "extrapolated", "poorly determined", or both of these
  std::vector<std::string> warnings() const;  // one sentence each
};

// Throws UsageError where fewer than 3 sizes have a run that reached the target, naming the file.
ScalingFit fit_runs(const ScalingRuns& data, uint64_t seed, const std::string& file, int draws = bootstrap_draws);

// Three digits: "45800", "3.35", "0.000749"; "infinity".
std::string three_digits(double x);

}  // namespace tapedeck
