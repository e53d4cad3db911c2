// The pages of runs: one run, one --repeat, several laid over each other, and a folder of runs as a list.
#pragma once
#include <string>

#include "apps/pages/html.h"
#include "apps/pages/run_charts.h"

namespace tapedeck {

std::string run_page(const RunGroup& group);     // of a run, or of a repeat with all its seeds
std::string overlay_page(const Groups& groups);  // two or more
// `links`: of each group, relative to the page. `sweeps`: a row each. `left_out`: folders that could not be read, a
// sentence each.
std::string list_page(const std::string& name, const Groups& groups, const std::vector<std::string>& links,
                      const Table& sweeps, const std::vector<std::string>& left_out);

std::string machine_html(const Json& machine);  // facts, folded away
std::string footer();                           // which program wrote the page

}  // namespace tapedeck
