// Statistics for few and skewed numbers: quantiles, exact intervals of a median, ratios of paired measurements.
// A run that missed its target is +infinity: it sorts last and stays in the count.
#pragma once
#include <optional>
#include <span>
#include <string>

namespace tapedeck {

// The p-quantile with linear interpolation between order statistics at (n − 1)p: type 7 of Hyndman & Fan 1996.
// Needs n >= 1 and p in [0, 1].
double quantile(std::span<const double> values, double p);
double median(std::span<const double> values);

struct MedianInterval {
  int low_rank, high_rank;  // order statistics, counted from 1
  double low, high;         // their values; high may be +infinity
  double coverage;          // exact, at least 0.95
};
// The shortest distribution-free 95 % interval of the median; none for n <= 5, where even [min, max] covers less.
std::optional<MedianInterval> median_interval(std::span<const double> values);

double mean(std::span<const double> values);                             // needs n >= 1
std::optional<double> sample_deviation(std::span<const double> values);  // divides by n − 1; none for n = 1

struct MeanInterval {
  double low, high;
  bool covers(double x) const { return low <= x && x <= high; }
};
// Student's 95 % interval of the mean; none for n < 2.
std::optional<MeanInterval> mean_interval(std::span<const double> values);

double student_t_cdf(double t, int degrees);                 // degrees >= 1
double student_t_quantile(double probability, int degrees);  // 0 < probability < 1

double relative_error(std::span<const double> y,
                      std::span<const double> exact);  // ‖y − exact‖ / ‖exact‖, of one length

struct RatioInterval {
  double ratio, low, high;  // geometric mean of a/b and its 95 % interval
  int n;
  bool covers_one() const { return low <= 1 && 1 <= high; }  // "no difference shown"
};
// a[i] and b[i] are one pair (same seed, same round), positive. None for fewer than 2 pairs.
std::optional<RatioInterval> paired_ratio(std::span<const double> a, std::span<const double> b);

// The same of two groups of which nothing is paired: geometric mean of a over that of b, and Welch's interval of the
// logs, with degrees of freedom rounded down  [Welch 1947, Biometrika 34]. n: the smaller group's. None where a group
// has fewer than 2.
std::optional<RatioInterval> unpaired_ratio(std::span<const double> a, std::span<const double> b);

struct IntervalEstimate {  // with its 95 % interval, of which an end may be 0 or infinite
  double value, low, high;
  bool covers(double x) const { return low <= x && x <= high; }
};
// a over b, both positive, where the two are independent and their intervals are all that is known: the distances from
// the logs of an estimate to the ends of its interval add up in squares, each on its own side [Zou & Donner 2008,
// Statistics in Medicine 27, "MOVER"].
IntervalEstimate ratio_of_estimates(const IntervalEstimate& a, const IntervalEstimate& b);

// Expected running time: seconds of all runs, those that missed included, over the number that reached; none if 0 did.
std::optional<double> expected_running_time(std::span<const double> seconds_spent, int reached);

std::string seconds_text(double seconds);                     // "1.23 s"; "not reached" for +infinity
std::string deviation_text(std::optional<double> deviation);  // "0.12"; "n/a"

}  // namespace tapedeck
