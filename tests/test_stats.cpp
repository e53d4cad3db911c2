// Statistics against known answers.
#include "apps/stats.h"

#include "engine/check.h"
#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace tapedeck;

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> one_to(int n) {
  std::vector<double> values;
  for (int i = n; i >= 1; --i) values.push_back(i);  // unsorted, so that ranks must come from sorting
  return values;
}
}  // namespace

TEST_CASE("quantile is type 7: linear between order statistics at (n - 1)p") {
  const std::vector<double> x = {4, 1, 3, 2};
  CHECK_EQ(quantile(x, 0), 1);
  CHECK_EQ(quantile(x, 1), 4);
  CHECK_EQ(quantile(x, 0.25), 1.75);  // R: quantile(1:4, 0.25, type = 7)
  CHECK_EQ(median(x), 2.5);
  CHECK_EQ(median(std::vector<double>{7}), 7);
  CHECK_EQ(quantile(one_to(101), 0.05), 6);
  CHECK_THROWS_AS(quantile({}, 0.5), Error);
  CHECK_THROWS_AS(quantile(x, 1.5), Error);
}

TEST_CASE("runs that missed sort last and make no NaN") {
  CHECK_EQ(median(std::vector<double>{kInfinity, 2, 1}), 2);
  CHECK_EQ(median(std::vector<double>{kInfinity, kInfinity, 1}), kInfinity);
  CHECK_EQ(median(std::vector<double>{kInfinity, kInfinity, 1, kInfinity}), kInfinity);  // between two infinities
  CHECK_EQ(median(std::vector<double>{1, 3, 1, kInfinity}), 2);
  CHECK_EQ(seconds_text(kInfinity), "not reached");
  CHECK_EQ(seconds_text(1.2345), "1.234 s");
  CHECK_EQ(seconds_text(123.45), "123.5 s");
}

TEST_CASE("exact interval of a median: ranks and coverage") {
  for (int n = 1; n <= 5; ++n) CHECK_FALSE(median_interval(one_to(n)));
  struct {
    int n, low, high;
  } const known[] = {{6, 1, 6}, {7, 1, 7}, {9, 2, 8}, {10, 2, 9}, {12, 3, 10}, {15, 4, 12}, {20, 6, 15}, {30, 10, 21}};
  for (const auto& row : known) {
    const int n = row.n, low = row.low, high = row.high;
    CAPTURE(n);
    const auto interval = median_interval(one_to(n));
    REQUIRE(interval);
    CHECK_EQ(interval->low_rank, low);
    CHECK_EQ(interval->high_rank, high);
    CHECK_EQ(interval->low, low);
    CHECK_EQ(interval->high, high);
    CHECK_GE(interval->coverage, 0.95);
  }
  CHECK_EQ(median_interval(one_to(6))->coverage, doctest::Approx(1 - 2 / 64.0));
  CHECK_EQ(median_interval(one_to(10))->coverage, doctest::Approx(1 - 22 / 1024.0));
  CHECK_EQ(median_interval(one_to(2000))->coverage, doctest::Approx(0.95).epsilon(0.01));  // 2^-2000 is no double
}

TEST_CASE("of two shortest intervals of a median the one with the higher upper rank") {
  const auto eight = median_interval(one_to(8));  // (1, 7) and (2, 8) both cover 246/256
  CHECK_EQ(eight->low_rank, 2);
  CHECK_EQ(eight->high_rank, 8);
  CHECK_EQ(eight->coverage, doctest::Approx(246 / 256.0));
  const auto eleven = median_interval(one_to(11));
  CHECK_EQ(eleven->low_rank, 3);
  CHECK_EQ(eleven->high_rank, 10);
}

TEST_CASE("the upper end of a median may be: not reached") {
  std::vector<double> seconds = one_to(10);
  seconds[0] = seconds[1] = kInfinity;
  const auto interval = median_interval(seconds);
  CHECK_EQ(interval->low, 2);
  CHECK_EQ(seconds_text(interval->high), "not reached");
  CHECK_EQ(median(seconds), 5.5);
}

TEST_CASE("sample deviation divides by n - 1 and has no value for one run") {
  CHECK_EQ(*sample_deviation(std::vector<double>{2, 4, 4, 4, 5, 5, 7, 9}), doctest::Approx(std::sqrt(32 / 7.0)));
  CHECK_FALSE(sample_deviation(std::vector<double>{3}));
  CHECK_EQ(deviation_text(sample_deviation(std::vector<double>{3})), "n/a");
  CHECK_EQ(deviation_text(0.123456), "0.123");
}

TEST_CASE("Student's t against the published table") {
  struct {
    int degrees;
    double p, t;
  } const table[] = {{1, 0.975, 12.7062047},  {2, 0.975, 4.30265273},  {3, 0.975, 3.18244631},
                     {4, 0.975, 2.77644511},  {5, 0.95, 2.01504837},   {9, 0.975, 2.26215716},
                     {10, 0.995, 3.16927267}, {30, 0.975, 2.04227246}, {200, 0.975, 1.97189622}};
  for (const auto& row : table) {
    const int degrees = row.degrees;
    const double p = row.p, t = row.t;
    CAPTURE(degrees);
    CHECK_EQ(student_t_quantile(p, degrees), doctest::Approx(t).epsilon(1e-8));
    CHECK_EQ(student_t_quantile(1 - p, degrees), doctest::Approx(-t).epsilon(1e-8));
    CHECK_EQ(student_t_cdf(t, degrees), doctest::Approx(p).epsilon(1e-8));
  }
  CHECK_EQ(student_t_cdf(0, 7), 0.5);
  CHECK_EQ(student_t_cdf(1, 1), doctest::Approx(0.75));  // Cauchy: ½ + atan(1)/π
  CHECK_THROWS_AS(student_t_quantile(1, 3), Error);
  CHECK_THROWS_AS(student_t_cdf(1, 0), Error);
}

TEST_CASE("ratio of pairs: geometric mean and interval of the mean log") {
  const std::vector<double> a = {2, 2 * std::exp(0.1), 2 * std::exp(-0.1)}, b = {1, 1, 1};
  const auto interval = paired_ratio(a, b);
  REQUIRE(interval);
  CHECK_EQ(interval->n, 3);
  CHECK_EQ(interval->ratio, doctest::Approx(2));
  const double half = 4.30265273 * 0.1 / std::sqrt(3.0);  // the logs have deviation 0.1
  CHECK_EQ(interval->low, doctest::Approx(2 * std::exp(-half)));
  CHECK_EQ(interval->high, doctest::Approx(2 * std::exp(half)));
  CHECK_FALSE(interval->covers_one());
  CHECK(paired_ratio(std::vector<double>{1, 2}, std::vector<double>{2, 1})->covers_one());
  CHECK_FALSE(paired_ratio(std::vector<double>{1}, std::vector<double>{2}));
  CHECK_THROWS_AS(paired_ratio(a, std::vector<double>{1}), Error);
  CHECK_THROWS_AS(paired_ratio(std::vector<double>{0, 1}, std::vector<double>{1, 1}), Error);
}

TEST_CASE("ratio without pairs: geometric means, and Welch's interval of the logs") {
  const auto e = [](double x) { return std::exp(x); };
  // Logs 0 and 2 against 0 and 0: means 1 and 0, variances of the means 1 and 0, so 1 degree of freedom, t = 12.7062.
  const auto one_sided = unpaired_ratio(std::vector<double>{1, e(2)}, std::vector<double>{1, 1});
  REQUIRE(one_sided);
  CHECK_EQ(one_sided->ratio, doctest::Approx(e(1)));
  CHECK_EQ(std::log(one_sided->low), doctest::Approx(1 - 12.7062047));
  CHECK_EQ(std::log(one_sided->high), doctest::Approx(1 + 12.7062047));
  // Both with deviation 0.1 over three: 4 degrees of freedom, t = 2.776445, error 0.1·√(2/3).
  const std::vector<double> a = {2, 2 * e(0.1), 2 * e(-0.1)}, b = {e(0.1), 1, e(-0.1)};
  const auto alike = unpaired_ratio(a, b);
  const double half = 2.77644511 * 0.1 * std::sqrt(2.0 / 3);
  CHECK_EQ(alike->ratio, doctest::Approx(2));
  CHECK_EQ(alike->low, doctest::Approx(2 * e(-half)));
  CHECK_EQ(alike->high, doctest::Approx(2 * e(half)));
  CHECK_EQ(unpaired_ratio(a, std::vector<double>{1, 1})->n, 2);  // groups need no common length
  CHECK_FALSE(unpaired_ratio(a, std::vector<double>{1}));
  CHECK_EQ(unpaired_ratio(std::vector<double>{2, 2}, std::vector<double>{1, 1})->low, doctest::Approx(2));
  CHECK_THROWS_AS(unpaired_ratio(a, std::vector<double>{1, 0}), Error);
}

TEST_CASE("ratio of two estimates: the sides of their intervals add up in squares") {
  const auto e = [](double x) { return std::exp(x); };
  const IntervalEstimate a = {e(2), e(2 - 0.3), e(2 + 0.6)}, b = {e(1), e(1 - 0.8), e(1 + 0.4)};
  const IntervalEstimate ratio = ratio_of_estimates(a, b);
  CHECK_EQ(ratio.value, doctest::Approx(e(1)));
  CHECK_EQ(ratio.low, doctest::Approx(e(1 - 0.5)));   // 0.3 below a, 0.4 above b
  CHECK_EQ(ratio.high, doctest::Approx(e(1 + 1.0)));  // 0.6 above a, 0.8 below b
  const IntervalEstimate same = ratio_of_estimates(a, a);
  CHECK(same.covers(1));
  CHECK_FALSE(ratio.covers(1));
  // An end that is not known leaves one end of the ratio open.
  const IntervalEstimate open = {1, 0.5, std::numeric_limits<double>::infinity()};
  CHECK_EQ(ratio_of_estimates(open, b).high, std::numeric_limits<double>::infinity());
  CHECK_EQ(ratio_of_estimates(b, open).low, 0);
  CHECK_EQ(ratio_of_estimates(open, {1, 0, 2}).high, std::numeric_limits<double>::infinity());
  CHECK_THROWS_AS(ratio_of_estimates({1, 2, 3}, a), Error);
  CHECK_THROWS_AS(ratio_of_estimates(a, {0, 0, 1}), Error);
}

TEST_CASE("ratio of two estimates: covers the truth in 95 % where their logs are normal") {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  const double spread[] = {0.1, 0.25};
  int covered = 0;
  constexpr int times = 4000;
  for (int i = 0; i < times; ++i) {
    IntervalEstimate estimates[2];
    for (int k : {0, 1}) {
      const double log = spread[k] * normal(random), half = 1.959964 * spread[k];
      estimates[k] = {std::exp(log), std::exp(log - half), std::exp(log + half)};
    }
    covered += ratio_of_estimates(estimates[0], estimates[1]).covers(1);
  }
  CHECK(covered > 0.94 * times);
  CHECK(covered < 0.96 * times);
}

TEST_CASE("expected running time counts the seconds of runs that missed") {
  CHECK_EQ(*expected_running_time(std::vector<double>{1, 2, 10}, 2), 6.5);
  CHECK_FALSE(expected_running_time(std::vector<double>{10, 10}, 0));
}
