// Sweeps laid over each other: one page, one table and one document of what differs between them and by how much.
#pragma once
#include <string>

#include "apps/pages/html.h"
#include "apps/pages/sweep_group.h"

namespace tapedeck {

std::string sweeps_page(const Sweeps& sweeps);  // two or more

// A row for each sweep and target that all have: the law, and B_crit over the first sweep's with its interval.
Table sweeps_table(const Sweeps& sweeps);
Json sweeps_json(const Sweeps& sweeps);
// How B_crit of each sweep stands to the first one's, a sentence each, at the tightest common target.
std::vector<std::string> sweeps_sentences(const Sweeps& sweeps);

// A row a sweep, of its own tightest target, for a folder of many. `links`: relative addresses, one each.
Table sweep_list(const Sweeps& sweeps, const std::vector<std::string>& links);

// sweeps_charts.cpp: the charts at one target, the large one of steps first.
std::vector<std::string> sweeps_figures(const Sweeps& sweeps, double target);
std::string sweeps_targets_figure(const Sweeps& sweeps, const std::vector<double>& targets);  // "" for one target

}  // namespace tapedeck
