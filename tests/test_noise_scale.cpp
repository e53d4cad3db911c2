// The gradient noise scale: numbers worked out by hand, and Gaussian gradients of known covariance.
#include "apps/noise_scale.h"

#include <cmath>
#include <utility>
#include <vector>

#include "engine/random.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;

namespace {

// Standard normal numbers, one after the other.
class Normals {
 public:
  explicit Normals(uint64_t seed) : seed_(seed) {}
  double next() {
    if (spare_) return *std::exchange(spare_, std::nullopt);
    const Random4 bits = random_bits(seed_, 0, site_of("normals"), place_++);
    const NormalPair pair = normal_pair(bits.word[0], bits.word[1]);
    spare_ = static_cast<double>(pair.second);
    return static_cast<double>(pair.first);
  }

 private:
  const uint64_t seed_;
  uint64_t place_ = 0;
  std::optional<double> spare_;
};

struct Squares {
  double s1, s2;
};
// Of n micro-batches of b gradients in `dimensions`, whose numbers come from draw(example, dimension).
template <class Draw>
Squares squares(int64_t n, int64_t b, int64_t dimensions, const Draw& draw) {
  std::vector<double> total(static_cast<size_t>(dimensions), 0.0);
  double s1 = 0, s2 = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t d = 0; d < dimensions; ++d) {
      double sum = 0;
      for (int64_t j = 0; j < b; ++j) sum += draw(i * b + j, d);
      const double mean = sum / static_cast<double>(b);
      s1 += mean * mean / static_cast<double>(n);
      total[static_cast<size_t>(d)] += mean / static_cast<double>(n);
    }
  for (const double mean : total) s2 += mean * mean;
  return {s1, s2};
}

struct Spread {
  double mean = 0, error = 0;
};
Spread spread(const std::vector<double>& values) {
  Spread out;
  const double n = static_cast<double>(values.size());
  for (const double value : values) out.mean += value / n;
  for (const double value : values) out.error += (value - out.mean) * (value - out.mean);
  out.error = std::sqrt(out.error / (n - 1) / n);
  return out;
}

}  // namespace

TEST_CASE("noise scale: b = 8, B = 32, |g_b|² = 9, |g_B|² = 3 give |G|² = 1, tr Σ = 64, B_simple = 64") {
  const auto sample = noise_sample(9, 3, 4, 8, 0);
  REQUIRE(sample);
  CHECK(sample->square == doctest::Approx(1));
  CHECK(sample->trace == doctest::Approx(64));
  CHECK(noise_sample(9, 3, 4, 8, 640)->square == doctest::Approx(1.1));  // of 640 examples that are not put back
  CHECK_FALSE(noise_sample(9, 9, 1, 32, 0));                             // one micro-batch: nothing to compare
  NoiseScale average(1000);
  CHECK_FALSE(average.estimate());
  for (int i = 0; i < 10; ++i) average.add(*sample, 32);
  const auto estimate = average.estimate();
  CHECK(estimate->samples == 10);
  REQUIRE(estimate->scale);
  CHECK(*estimate->scale == doctest::Approx(64));
  CHECK(*estimate->low == doctest::Approx(64));
}

TEST_CASE("noise scale: no bias on Gaussian gradients, put back or not") {
  constexpr int64_t n = 4, b = 2, dimensions = 3, draws = 10'000;
  const double mean[] = {0.5, -0.25, 0}, deviation[] = {1, 2, 0.5};
  const double square = 0.5 * 0.5 + 0.25 * 0.25, trace = 1 + 4 + 0.25;
  Normals normals(7);
  std::vector<double> found_square, found_trace;
  for (int64_t draw = 0; draw < draws; ++draw) {
    const Squares s =
        squares(n, b, dimensions, [&](int64_t, int64_t d) { return mean[d] + deviation[d] * normals.next(); });
    const NoiseSample sample = *noise_sample(s.s1, s.s2, n, b, 0);
    found_square.push_back(sample.square), found_trace.push_back(sample.trace);
  }
  CHECK(std::abs(spread(found_square).mean - square) < 3 * spread(found_square).error);
  CHECK(std::abs(spread(found_trace).mean - trace) < 3 * spread(found_trace).error);

  // A population of 12 examples, 8 of which make a step: its own mean and covariance (with 11 below) are the truth.
  constexpr size_t population = 12;
  std::vector<double> examples;
  for (size_t i = 0; i < population * dimensions; ++i) examples.push_back(0.3 + normals.next());
  double true_square = 0, true_trace = 0;
  for (size_t d = 0; d < dimensions; ++d) {
    double center = 0;
    for (size_t i = 0; i < population; ++i) center += examples[i * dimensions + d] / population;
    true_square += center * center;
    for (size_t i = 0; i < population; ++i) {
      const double off = examples[i * dimensions + d] - center;
      true_trace += off * off / (population - 1);
    }
  }
  found_square.clear(), found_trace.clear();
  std::vector<double> uncorrected;
  for (uint64_t draw = 0; draw < draws; ++draw) {
    size_t order[population];
    for (size_t i = 0; i < population; ++i) order[i] = i;
    for (size_t i = 0; i < n * b; ++i) {  // the first 8 of a shuffle
      const uint32_t word = random_bits(9, draw, site_of("shuffle"), i).word[0];
      std::swap(order[i], order[i + bounded(word, static_cast<uint32_t>(population - i))]);
    }
    const Squares s = squares(n, b, dimensions, [&](int64_t example, int64_t d) {
      return examples[order[example] * dimensions + static_cast<size_t>(d)];
    });
    const NoiseSample sample = *noise_sample(s.s1, s.s2, n, b, population);
    found_square.push_back(sample.square), found_trace.push_back(sample.trace);
    uncorrected.push_back(noise_sample(s.s1, s.s2, n, b, 0)->square);
  }
  CHECK(std::abs(spread(found_square).mean - true_square) < 3 * spread(found_square).error);
  CHECK(std::abs(spread(found_trace).mean - true_trace) < 3 * spread(found_trace).error);
  CHECK(std::abs(spread(uncorrected).mean - true_square) > 10 * spread(uncorrected).error);  // the correction matters
}

TEST_CASE("noise scale: the average forgets by examples, and its numerator and denominator are averaged apart") {
  NoiseScale average(100);
  average.add({1, 10}, 50);
  average.add({3, 60}, 100);  // halves the first
  const auto estimate = average.estimate();
  CHECK(estimate->square == doctest::Approx((0.5 * 1 + 3) / 1.5));
  CHECK(estimate->trace == doctest::Approx((0.5 * 10 + 60) / 1.5));
  CHECK_FALSE(estimate->scale);  // two samples resolve nothing
  for (int i = 0; i < 3000; ++i) average.add({2, 8}, 100);
  CHECK(average.estimate()->square == doctest::Approx(2));  // what was before is forgotten
  CHECK(average.estimate()->samples == 3002);
}

TEST_CASE("noise scale: the interval covers the truth, and is not resolved where |G|² may be 0") {
  int covered = 0, resolved = 0, resolved_noise = 0;
  constexpr int repeats = 200;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    Normals normals(static_cast<uint64_t>(100 + repeat));
    NoiseScale average(1e9), noise(1e9);
    for (int step = 0; step < 200; ++step) {
      const auto draw = [&](double mean) {
        return squares(4, 2, 5, [&](int64_t, int64_t) { return mean + normals.next(); });
      };
      const Squares s = draw(0.5), none = draw(0);
      average.add(*noise_sample(s.s1, s.s2, 4, 2, 0), 8);
      noise.add(*noise_sample(none.s1, none.s2, 4, 2, 0), 8);
    }
    const auto estimate = average.estimate();
    resolved += estimate->scale.has_value();
    covered += estimate->scale && *estimate->low <= 4 && 4 <= *estimate->high;  // tr Σ = 5, |G|² = 1.25
    resolved_noise += noise.estimate()->scale.has_value();
  }
  CHECK(resolved == repeats);
  CHECK(covered >= 180);  // 95 % of 200 is 190 ± 3.1
  CHECK(covered <= 199);
  CHECK(resolved_noise <= 14);  // 2.5 % of 200, and three deviations
}

// Fault: all blocks count alike, though an average that forgets rests on the last few of them: 84 % here.
TEST_CASE("noise scale: the interval of an average that forgets covers the truth as well") {
  int covered = 0;
  constexpr int repeats = 150;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    Normals normals(static_cast<uint64_t>(1000 + repeat));
    NoiseScale average(50);
    for (int step = 0; step < 1500; ++step) average.add({1 + normals.next(), 5 + normals.next()}, 1);
    const auto estimate = average.estimate();
    REQUIRE(estimate->scale);
    covered += *estimate->low <= 5 && 5 <= *estimate->high;
  }
  CHECK(covered >= 135);  // 95 % of 150 is 142.5 ± 2.7
  CHECK(covered <= 149);
}
