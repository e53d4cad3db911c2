// What makes a sweep believable, judged by the program from the documents alone: each rule holds, does not hold, or
// does not apply, with the figures that say so. Rules with a number are of Hoefler & Belli, "Scientific Benchmarking of
// Parallel Computing Systems" (SC 2015); the others are ours.
#pragma once
#include <vector>

#include "apps/pages/checklist.h"
#include "apps/pages/sweep_read.h"

namespace tapedeck {

std::vector<Judged> sweep_checklist(const Json& summary, const Json& machine);

}  // namespace tapedeck
