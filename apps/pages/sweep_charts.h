// The other charts of a sweep: the clock, rates, the noise scale, and B_crit by target. What cannot be drawn is said in
// a sentence instead.
#pragma once
#include <string>

#include "apps/pages/sweep_law_chart.h"

namespace tapedeck {

std::string time_figure(const Json& summary);       // seconds to the target, with T(B) and B*
std::string time_figure_of_fit(const Json& fit);    // "" where its runs have no seconds
std::string step_time_figure(const Json& summary);  // what a step takes, with a + c·B
std::string rate_figure(const Json& summary);       // tuned rates, and what the usual rules say
std::string rate_map_figure(const Json& summary);   // every rate that was tried: sweep_rate_map.cpp
std::string noise_figure(const Json& summary);      // the gradient noise scale beside B_crit
std::string targets_figure(const Json& summary);    // "" unless there are several targets

}  // namespace tapedeck
