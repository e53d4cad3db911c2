// The two sides of `tapedeck compare`: which runs its options stand for.
#pragma once
#include <string>
#include <vector>

#include "apps/config.h"

namespace tapedeck {

struct Sides {
  Config a, b;                           // of `train`
  std::string named_a, named_b;          // what makes the difference, as on the command line
  std::vector<std::string> differences;  // what else differs: "weight-decay 0 / 0.01"
};

// Of --a and --b, or of the preset's. A side is options, or the folder of a run, whose options it then has. Options
// beside them hold for both sides, and a side's own come before them: a run's are all that change its result. Throws
// UsageError as `train` would, naming the side, and where an option holds for neither.
Sides compare_sides(const Config& config);

}  // namespace tapedeck
