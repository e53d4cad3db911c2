// Two saved documents of `tapedeck bench`, compared row by row.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/config.h"

namespace tapedeck {

// A document of a bench from a file. Throws Error naming the file where it is none, or of a newer format.
Json read_bench(const std::string& file);

// What makes two documents bad company, a sentence each: another machine, threads, device, precision, build, or option,
// or a machine that was busy.
std::vector<std::string> differences(const Json& before, const Json& after);

// {"rows": [{"key", "n_before", "n_after", "before", "after", "unit", "ratio", "ratio_low", "ratio_high", "verdict"}],
//  "only_before": [keys], "only_after": [keys]}; a verdict is "faster", "slower" or "no difference shown". A row's
// ratio is after / before of the geometric means of its rounds, the 95 % interval null where a side has one round.
Json diff_rows(const Json& before, const Json& after);

}  // namespace tapedeck
