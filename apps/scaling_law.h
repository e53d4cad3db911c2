// How many steps S a run of batch size B needs to reach its target [McCandlish et al. 2018, arXiv:1812.06162,
// eq. 2.11]:
//
//   S(B) = Smin + Emin/B,   the same as (S/Smin − 1)(E/Emin − 1) = 1 with E = B·S examples;   B_crit = Emin/Smin,
//
// where a run needs 2·Smin steps and 2·Emin examples. A run's steps lie in an interval (L, U]: from its last evaluation
// below the target to its first at it, or from its cap to infinity. log S ~ Normal(log S(B), σ²), so a run contributes
// log(Φ(log U) − Φ(log L)); where L == U it contributes the density at that number. The fit is the maximum of the sum.
// A run that missed thus says what it knows, no more: its cap is no result, and leaving it out makes slow sizes fast.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck {

struct ScalingRun {
  double batch;         // examples a step
  double steps;         // of the first evaluation at the target, or the cap
  double lower, upper;  // the steps it needed lie in (lower, upper]; infinity where it missed; equal: known exactly
  double seconds = 0;   // on the training clock; 0: not known
  bool reached() const;
  double middle() const;  // of its interval, in logs; infinity where it missed
};

ScalingRun exact_run(double batch, double steps);
ScalingRun missed_run(double batch, double cap);

struct ScalingLaw {
  double smin, b_crit;
  double sigma;  // of log S
  // B_crit lies beyond a thousand times the largest size, or below a thousandth of the smallest: in these runs steps
  // fall like 1/B throughout, or not at all. It is then infinity or 0, and the law is drawn at that limit.
  enum class End { none, no_floor, flat } end = End::none;
  double limit = 0;  // B_crit within the limits, for steps()
  bool converged = true;

  double emin() const { return smin * limit; }
  double steps(double batch) const { return smin * (1 + limit / batch); }
};

// σ is fitted, but is 1 % at least: runs known by intervals alone, all of which some law meets, would have none, and a
// law in the middle of them is wanted, not one of many. Runs known exactly have the same law whatever their σ.
inline constexpr double least_sigma = 0.01;

// The runs of a batch size, by what the likelihood needs of them.
struct SizeSample {
  double log_batch = 0;
  double exact = 0, mean = 0, squares = 0;  // runs known exactly: how many, mean of log S, Σ (log S − mean)²
  struct Interval {
    double low, high;  // of log S
    double times;
  };
  std::vector<Interval> intervals;
  int reached = 0;

  void add(const ScalingRun& run, double times = 1);
};

std::vector<SizeSample> group_by_size(std::span<const ScalingRun> runs);  // in the order of sizes
bool can_fit(std::span<const SizeSample> sizes);  // 3 different sizes at which a run reached the target

// Throws Error unless can_fit. With near, a fit to similar runs, the search begins there alone.
ScalingLaw fit_scaling_law(std::span<const SizeSample> sizes, const ScalingLaw* near = nullptr);
ScalingLaw fit_scaling_law(std::span<const ScalingRun> runs);

double log_likelihood(std::span<const SizeSample> sizes, double smin, double b_crit, double sigma);

}  // namespace tapedeck
