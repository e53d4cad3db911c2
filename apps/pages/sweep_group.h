// Several finished sweeps, and what can be compared of them: targets that all have. Rates are those that each sweep
// tuned for its own tightest target.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/pages/html.h"
#include "apps/pages/sweep_read.h"
#include "apps/stats.h"

namespace tapedeck {

struct SweepRecord {
  std::filesystem::path path;
  std::string name;                 // the folder's
  Json summary, settings, machine;  // summary.json, sweep.json, machine.json; null where there is no such file
};
using Sweeps = std::vector<SweepRecord>;

bool is_sweep(const std::filesystem::path& folder);
// Throws UsageError where the folder holds no sweep, or one without a result yet.
SweepRecord read_sweep(const std::filesystem::path& folder);
std::string sweep_name(const Sweeps& sweeps, size_t which);  // its path where two have one name

// Values of the targets that all the sweeps have, the tightest last; none where data, metric or the kind of passage
// differ, too. `why_none` is a sentence then.
struct CommonTargets {
  std::vector<double> values;
  std::string metric, why_none;
};
CommonTargets common_targets(const Sweeps& sweeps);

const Json& fit_at(const SweepRecord& sweep, double target);  // null where there is no law
// Steps by size: medians with their exact intervals; with horizons the fewest steps, in (low, high].
std::map<double, Middle> steps_at(const SweepRecord& sweep, double target);
std::optional<IntervalEstimate> b_crit_of(const Json& fit);  // none without an interval

// Steps to the target by size, of sizes where every run reached it: of others no ratio can be had.
std::map<double, std::vector<double>> steps_by_size(const SweepRecord& sweep, double target);

// Things that make the sweeps' seconds, or all of their figures, no fair comparison: a sentence each.
std::vector<std::string> sweep_differences(const Sweeps& sweeps);
Table differing_settings(const Sweeps& sweeps);  // options that differ, a column a sweep; no rows where none do

}  // namespace tapedeck
