// Runs of several batch sizes in a CSV file, a run a line under a line of names, in any order of columns:
//
//   batch            examples a step
//   steps or cost    what the run took: steps to the target, or cost in any unit that grows with the examples seen
//                    (examples, passes over the data); of a run that missed, how far it got
//   reached          yes or no (1 or 0, true or false); without it every run reached the target
//   lower, upper     where the evaluations were: the target was crossed in (lower, upper], in the unit of steps or
//   cost;
//                    an empty field is the value of steps or cost itself, and upper may be inf where the run missed
//   seconds          on the training clock, empty where not known
#pragma once
#include <string>
#include <vector>

#include "apps/scaling_law.h"

namespace tapedeck {

struct ScalingRuns {
  std::vector<ScalingRun> runs;  // steps; of a cost: cost/batch, so that Emin is a cost and B_crit is in examples
  bool cost = false, has_seconds = false;
  std::string each = "run";  // what one of them is, for what is said of them
};

// Throws UsageError naming file, line, column, value and what is wanted.
ScalingRuns read_scaling_runs(const std::string& path);

}  // namespace tapedeck
