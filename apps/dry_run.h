// train --dry-run: the options in effect, and what a step would cost. Trains and writes nothing.
#pragma once
#include "apps/problem.h"

namespace tapedeck {

int dry_run(const Config& config, const Problem& problem, Device device);

}  // namespace tapedeck
