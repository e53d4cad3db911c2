#include "apps/scaling_bootstrap.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "apps/stats.h"
#include "engine/check.h"
#include "engine/random.h"

namespace tapedeck {
namespace {

using Groups = std::vector<std::vector<ScalingRun>>;  // runs of a size together

Groups groups_of(std::span<const ScalingRun> runs) {
  std::map<double, std::vector<ScalingRun>> by_size;
  for (const ScalingRun& run : runs) by_size[run.batch].push_back(run);
  Groups groups;
  for (auto& [batch, group] : by_size) groups.push_back(std::move(group));
  return groups;
}

// Which of n, one after the other: a pure function of (seed, draw, how many were asked for).
class Picker {
 public:
  Picker(uint64_t seed, uint64_t draw) : seed_(seed), draw_(draw) {}
  size_t operator()(size_t n) {
    if (asked_ % 4 == 0) bits_ = random_bits(seed_, draw_, site_of("scaling bootstrap"), asked_ / 4);
    return bounded(bits_.word[asked_++ % 4], static_cast<uint32_t>(n));
  }

 private:
  uint64_t seed_, draw_, asked_ = 0;
  Random4 bits_ = {};
};

std::vector<SizeSample> draw_from(const Groups& groups, Picker& pick) {
  std::vector<SizeSample> sample(groups.size());
  for (SizeSample& size : sample) {
    const std::vector<ScalingRun>& group = groups[pick(groups.size())];
    std::vector<int> times(group.size());
    for (size_t i = 0; i < group.size(); ++i) ++times[pick(group.size())];
    for (size_t i = 0; i < group.size(); ++i)
      if (times[i] > 0) size.add(group[i], times[i]);
  }
  return sample;
}

Bounds percentiles(std::span<const double> values) { return {quantile(values, 0.025), quantile(values, 0.975)}; }

// Of each size by itself, not of the curve as a whole.
std::vector<Bootstrap::BandRow> band_of(const std::vector<ScalingLaw>& laws, double smallest, double largest) {
  constexpr int sizes = 25;
  std::vector<Bootstrap::BandRow> band;
  std::vector<double> steps(laws.size());
  for (int i = 0; i < sizes; ++i) {
    const double batch = smallest * std::pow(largest / smallest, static_cast<double>(i) / (sizes - 1));
    std::transform(laws.begin(), laws.end(), steps.begin(), [&](const ScalingLaw& law) { return law.steps(batch); });
    band.push_back({batch, percentiles(steps)});
  }
  return band;
}

}  // namespace

Bootstrap bootstrap_law(std::span<const ScalingRun> runs, const ScalingLaw& law, uint64_t seed, int draws) {
  const Groups groups = groups_of(runs);
  std::vector<double> b_crit, smin, emin;
  std::vector<ScalingLaw> laws;
  Bootstrap out;
  for (uint64_t number = 0; std::ssize(b_crit) < draws; ++number) {
    CHECK(number < uint64_t(draws) * 1000, "scaling law: of {} draws of batch sizes and runs {} had 3 different sizes",
          number, b_crit.size());
    Picker pick(seed, number);
    const std::vector<SizeSample> sample = draw_from(groups, pick);
    if (!can_fit(sample)) {
      ++out.drawn_again;
      continue;
    }
    const ScalingLaw drawn = fit_scaling_law(sample, &law);
    b_crit.push_back(drawn.b_crit), smin.push_back(drawn.smin), emin.push_back(drawn.emin());
    laws.push_back(drawn);
  }
  out.draws = draws;
  out.b_crit = percentiles(b_crit), out.smin = percentiles(smin), out.emin = percentiles(emin);
  out.band = band_of(laws, groups.front().front().batch, groups.back().front().batch);
  out.at_least = quantile(b_crit, 0.05), out.at_most = quantile(b_crit, 0.95);
  return out;
}

std::optional<Bounds> leave_one_out(std::span<const ScalingRun> runs, const ScalingLaw& law) {
  const std::vector<SizeSample> all = group_by_size(runs);
  std::optional<Bounds> range;
  for (size_t without = 0; without < all.size(); ++without) {
    std::vector<SizeSample> rest = all;
    rest.erase(rest.begin() + static_cast<ptrdiff_t>(without));
    if (!can_fit(rest)) return std::nullopt;
    const double b_crit = fit_scaling_law(rest, &law).b_crit;
    if (!range) range = {b_crit, b_crit};
    range->low = std::min(range->low, b_crit), range->high = std::max(range->high, b_crit);
  }
  return range;
}

Bracket bracket(std::span<const ScalingRun> runs, const ScalingLaw& law) {
  Bracket out = {false, false};
  for (const ScalingRun& run : runs)
    if (run.reached()) {
      out.below = out.below || run.batch <= law.b_crit / 4;
      out.above = out.above || run.batch >= law.b_crit * 2;
    }
  return out;
}

CriticalSizes critical_sizes(double b_crit) { return {b_crit, b_crit / 5, b_crit / 9, b_crit * 10}; }

}  // namespace tapedeck
