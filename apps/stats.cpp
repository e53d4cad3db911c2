#include "apps/stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "engine/check.h"

namespace tapedeck {
namespace {

constexpr double kPi = 3.14159265358979323846;

std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> out(values.begin(), values.end());
  std::sort(out.begin(), out.end());
  return out;
}

// P(B = k) for B ~ Binomial(n, ½).
double binomial_half(int n, int k) {
  return std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0) - n * std::log(2.0));
}

}  // namespace

double quantile(std::span<const double> values, double p) {
  CHECK(!values.empty(), "quantile: needs at least one value");
  CHECK(p >= 0 && p <= 1, "quantile: p is {}, needs 0 to 1", p);
  const std::vector<double> x = sorted(values);
  const double position = static_cast<double>(x.size() - 1) * p;
  const size_t below = static_cast<size_t>(position);
  const double share = position - static_cast<double>(below);
  if (share == 0 || x[below] == x[below + 1]) return x[below];  // also: no infinity minus infinity
  return x[below] + share * (x[below + 1] - x[below]);
}

double median(std::span<const double> values) { return quantile(values, 0.5); }

// P(X_(r) <= median < X_(s)) = P(r <= B < s) for B ~ Binomial(n, ½) values below the median, whatever X's distribution.
// For a length s − r the most probable ranks are the central ones; when two are equally central, those with the higher
// upper rank are taken: for times to a target that is the cautious end.
std::optional<MedianInterval> median_interval(std::span<const double> values) {
  const int n = static_cast<int>(values.size());
  const std::vector<double> x = sorted(values);
  for (int length = 1; length < n; ++length) {
    const int low = (n - length + 2) / 2;  // ⌈(n − length + 1) / 2⌉
    double coverage = 0;
    for (int k = low; k < low + length; ++k) coverage += binomial_half(n, k);
    if (coverage >= 0.95) return MedianInterval{low, low + length, x[low - 1], x[low + length - 1], coverage};
  }
  return std::nullopt;
}

double mean(std::span<const double> values) {
  CHECK(!values.empty(), "mean: needs at least one value");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<double> sample_deviation(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const double center = mean(values);
  double sum = 0;
  for (double value : values) sum += (value - center) * (value - center);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

// A(t|ν) = P(|T| < t) as a finite sum in θ = atan(t/√ν)  [Abramowitz & Stegun 1964, 26.7.3 and 26.7.4]:
//   ν even:  sin θ (1 + ½ cos²θ + ½·¾ cos⁴θ + … up to cos^(ν−2))
//   ν odd:   2/π (θ + sin θ (cos θ + ⅔ cos³θ + ⅔·⅘ cos⁵θ + … up to cos^(ν−2)))
double student_t_cdf(double t, int degrees) {
  CHECK(degrees >= 1, "student_t_cdf: degrees of freedom are {}, needs at least 1", degrees);
  const double angle = std::atan(std::abs(t) / std::sqrt(static_cast<double>(degrees)));
  const double square = std::cos(angle) * std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? std::cos(angle) : 1, sum = 0;
  for (int power = odd ? 1 : 0; power <= degrees - 2; power += 2) {
    sum += term;
    term *= square * (power + 1) / (power + 2);
  }
  const double within = odd ? 2 / kPi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
  return t < 0 ? (1 - within) / 2 : (1 + within) / 2;
}

double student_t_quantile(double probability, int degrees) {
  CHECK(probability > 0 && probability < 1, "student_t_quantile: probability is {}, needs between 0 and 1",
        probability);
  if (probability < 0.5) return -student_t_quantile(1 - probability, degrees);
  double low = 0, high = 1;
  while (student_t_cdf(high, degrees) < probability) high *= 2;
  for (int halving = 0; halving < 100; ++halving) {
    const double middle = (low + high) / 2;
    (student_t_cdf(middle, degrees) < probability ? low : high) = middle;
  }
  return high;
}

std::optional<MeanInterval> mean_interval(std::span<const double> values) {
  const std::optional<double> deviation = sample_deviation(values);
  if (!deviation) return std::nullopt;
  const int n = static_cast<int>(values.size());
  const double center = mean(values), half = student_t_quantile(0.975, n - 1) * *deviation / std::sqrt(n);
  return MeanInterval{center - half, center + half};
}

double relative_error(std::span<const double> y, std::span<const double> exact) {
  CHECK(y.size() == exact.size(), "relative_error: {} values against {}", y.size(), exact.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    difference += (y[i] - exact[i]) * (y[i] - exact[i]);
    size += exact[i] * exact[i];
  }
  return std::sqrt(difference / size);
}

std::optional<RatioInterval> paired_ratio(std::span<const double> a, std::span<const double> b) {
  CHECK(a.size() == b.size(), "paired_ratio: {} values against {}, needs pairs", a.size(), b.size());
  std::vector<double> logs;
  for (size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i] > 0 && b[i] > 0, "paired_ratio: pair {} is {} and {}, needs positive numbers", i, a[i], b[i]);
    logs.push_back(std::log(a[i] / b[i]));
  }
  const std::optional<MeanInterval> interval = mean_interval(logs);
  if (!interval) return std::nullopt;
  return RatioInterval{std::exp(mean(logs)), std::exp(interval->low), std::exp(interval->high),
                       static_cast<int>(logs.size())};
}

std::optional<RatioInterval> unpaired_ratio(std::span<const double> a, std::span<const double> b) {
  struct Group {
    double center, error;  // of the logs: mean, and variance of the mean
    double degrees;
  };
  const auto group = [](std::span<const double> values) -> std::optional<Group> {
    std::vector<double> logs;
    for (const double value : values) {
      CHECK(value > 0, "unpaired_ratio: a value is {}, needs positive numbers", value);
      logs.push_back(std::log(value));
    }
    const std::optional<double> deviation = sample_deviation(logs);
    if (!deviation) return std::nullopt;
    const double n = static_cast<double>(logs.size());
    return Group{mean(logs), *deviation * *deviation / n, n - 1};
  };
  const std::optional<Group> x = group(a), y = group(b);
  if (!x || !y) return std::nullopt;
  const double error = x->error + y->error;
  // (s₁² + s₂²)² / (s₁⁴/ν₁ + s₂⁴/ν₂) lies between the smaller ν and their sum.
  const double degrees = error > 0
                             ? error * error / (x->error * x->error / x->degrees + y->error * y->error / y->degrees)
                             : x->degrees + y->degrees;
  const double half = student_t_quantile(0.975, static_cast<int>(degrees)) * std::sqrt(error);
  const double center = x->center - y->center;
  return RatioInterval{std::exp(center), std::exp(center - half), std::exp(center + half),
                       static_cast<int>(std::min(a.size(), b.size()))};
}

IntervalEstimate ratio_of_estimates(const IntervalEstimate& a, const IntervalEstimate& b) {
  for (const IntervalEstimate& x : {a, b})
    CHECK(0 < x.value && std::isfinite(x.value) && 0 <= x.low && x.low <= x.value && x.value <= x.high,
          "ratio_of_estimates: {} in [{}, {}], needs 0 <= low <= value <= high", x.value, x.low, x.high);
  const double ratio = a.value / b.value;
  const double down = std::hypot(std::log(a.value / a.low), std::log(b.high / b.value));
  const double up = std::hypot(std::log(a.high / a.value), std::log(b.value / b.low));
  return {ratio, ratio * std::exp(-down), ratio * std::exp(up)};
}

std::optional<double> expected_running_time(std::span<const double> seconds_spent, int reached) {
  if (reached == 0) return std::nullopt;
  return std::accumulate(seconds_spent.begin(), seconds_spent.end(), 0.0) / reached;
}

std::string seconds_text(double seconds) {
  if (std::isinf(seconds)) return "not reached";
  return seconds < 10 ? fmt::format("{:.3f} s", seconds) : fmt::format("{:.1f} s", seconds);
}

std::string deviation_text(std::optional<double> deviation) {
  return deviation ? fmt::format("{:.3g}", *deviation) : "n/a";
}

}  // namespace tapedeck
