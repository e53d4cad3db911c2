// The curves of runs: one with its training and validation loss, several laid over each other.
#pragma once
#include <string>
#include <vector>

#include "apps/pages/run_record.h"

namespace tapedeck {

using Groups = std::vector<RunGroup>;

// A group's name among these: its folder's, or its path where two folders have one name.
std::string group_name(const Groups& groups, size_t which);

// Figures by "step", "examples" or "seconds": loss, and accuracy where the runs have one.
std::vector<std::string> curve_figures(const Groups& groups, const char* by);
// By steps, those that the lines of metrics tell: gradient norm, rate where it moves, loss scale, noise scale.
std::vector<std::string> other_figures(const Groups& groups);
// Seconds to the target, a point a seed and a triangle for each that missed; "" where no run has a target.
std::string target_figure(const Groups& groups);

}  // namespace tapedeck
