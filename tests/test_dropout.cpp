// The statistics of dropout's mask: how much it drops, that it keeps the mean, and what it depends on. Its arithmetic
// is held by its line in test_ops.cpp. Bounds are 5 standard deviations of the binomial: a fair mask fails 1 in 10⁶.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/ops.h"
#include "tests/gpu.h"

#undef CHECK  // the engine's, which throws; here it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;

namespace {

constexpr int64_t n = 100'000;
constexpr RandomKey key{7, 3, 1};

std::vector<float> mask(double p, const RandomKey& k, Device device = Device::cpu) {
  return dropout(Tensor::full({n}, DType::f32, device, 1), p, k).values<float>();
}

// The share of elements whose fate differs between two masks.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  int64_t differing = 0;
  for (size_t i = 0; i < a.size(); ++i) differing += a[i] != b[i];
  return static_cast<double>(differing) / static_cast<double>(n);
}

// 5 σ of a share of n independent events of probability p.
double five_sigma(double p) { return 5 * std::sqrt(p * (1 - p) / static_cast<double>(n)); }

}  // namespace

TEST_CASE("dropout drops its share and keeps the mean") {
  for (const double p : {0.01, 0.1, 0.5, 0.9}) {
    INFO("p = " << p);
    const std::vector<float> y = mask(p, key);
    double total = 0;
    for (float value : y) total += value;
    CHECK(std::all_of(y.begin(), y.end(), [&](float v) { return v == 0 || v == static_cast<float>(1 / (1 - p)); }));
    const double dropped = static_cast<double>(std::count(y.begin(), y.end(), 0.0f)) / static_cast<double>(n);
    CHECK(std::abs(dropped - p) <= five_sigma(p));
    CHECK(std::abs(total / static_cast<double>(n) - 1) <= five_sigma(p) / (1 - p));  // E[y] = x
  }
}

TEST_CASE("dropout's neighbours are dropped independently") {
  const double p = 0.3, both = p * p;
  const std::vector<float> y = mask(p, key);
  for (const size_t distance : {1, 2, 4, 256}) {
    INFO("distance " << distance);
    int64_t pairs = 0;
    for (size_t i = 0; i + distance < y.size(); ++i) pairs += y[i] == 0 && y[i + distance] == 0;
    // The n pairs overlap, each with two others, which widens their sum by less than √3.
    CHECK(std::abs(static_cast<double>(pairs) / static_cast<double>(n) - both) <=
          std::sqrt(3) * five_sigma(both) + 256.0 / n);
  }
}

TEST_CASE("dropout's mask is a function of seed, step and site, and of nothing else") {
  const double p = 0.5, independent = 2 * p * (1 - p);
  const std::vector<float> first = mask(p, key);
  CHECK(mask(p, key) == first);
  for (const Device device : test::devices_with_lanes()) CHECK(mask(p, key, device) == first);
  for (const RandomKey& other : {RandomKey{8, 3, 1}, RandomKey{7, 4, 1}, RandomKey{7, 3, 2}}) {
    INFO("seed " << other.seed << ", step " << other.step << ", site " << other.site);
    CHECK(std::abs(difference(mask(p, other), first) - independent) <= five_sigma(independent));
  }
}
