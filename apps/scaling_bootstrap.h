// How sure a scaling law is. Runs of one batch size share more than chance: their rate was tuned once, and the law may
// not hold at that size. So the bootstrap has two levels, sizes first and then runs within each of them [Davison &
// Hinkley 1997, §3.8]: drawing runs alone gives intervals 2 to 8 times too narrow. A draw needs 3 different sizes at
// which a run reached the target, else it is drawn again. The interval is that of percentiles.
#pragma once
#include <optional>
#include <vector>

#include "apps/scaling_law.h"

namespace tapedeck {

struct Bounds {
  double low, high;
};

struct Bootstrap {
  Bounds b_crit, smin, emin;       // 95 %, from the 2.5th to the 97.5th percentile; an end may be 0 or infinity
  double at_least, at_most;        // of B_crit, each alone with 95 %
  int draws = 0, drawn_again = 0;  // the latter had too few sizes
  struct BandRow {
    double batch;
    Bounds steps;  // 95 %, of the laws drawn at this size; an end may be infinity
  };
  std::vector<BandRow> band;  // from the smallest size to the largest
};

inline constexpr int bootstrap_draws = 2000;
Bootstrap bootstrap_law(std::span<const ScalingRun> runs, const ScalingLaw& law, uint64_t seed,
                        int draws = bootstrap_draws);

// The range of B_crit as each size in turn is left out; none where fewer than 3 sizes would be left.
std::optional<Bounds> leave_one_out(std::span<const ScalingRun> runs, const ScalingLaw& law);

// Whether the sizes tell where the curve bends: some at or below B_crit/4 and some at or above 2·B_crit, each with a
// run that reached the target. Where one side is missing B_crit is extrapolated, and only bounded from the other.
struct Bracket {
  bool below, above;
  bool holds() const { return below && above; }
};
Bracket bracket(std::span<const ScalingRun> runs, const ScalingLaw& law);

// The size at which a run takes so much, by four definitions that lie up to 90 times apart.
struct CriticalSizes {
  double half_efficient;    // B_crit: twice Emin, twice Smin
  double fifth_more;        // B_crit/5: 20 % more examples than Emin
  double ninety_efficient;  // B_crit/9: 90 % of the examples are not wasted
  double near_smin;         // 10·B_crit: 10 % more steps than Smin
};
CriticalSizes critical_sizes(double b_crit);

}  // namespace tapedeck
