// Philox against its published answers, the streams against each other, and the distributions against their moments.
// Statistical bounds are 5 standard deviations of what n independent draws give; seeds are fixed, so no test is flaky.
#include "engine/random.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <vector>

using namespace tapedeck;

namespace {

constexpr double sigmas = 5;

std::array<uint32_t, 4> words(Random4 r) { return {r.word[0], r.word[1], r.word[2], r.word[3]}; }

std::vector<uint32_t> stream(uint64_t seed, uint64_t step, uint32_t site, size_t n) {
  std::vector<uint32_t> all;
  for (uint64_t block = 0; all.size() < n; ++block)
    for (const uint32_t word : random_bits(seed, step, site, block).word) all.push_back(word);
  return all;
}

double correlation(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {  // of two uniform streams
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (uniform01(a[i]) - 0.5) * (uniform01(b[i]) - 0.5);
  return 12 * sum / static_cast<double>(a.size());
}

// Sum of (observed - expected)^2 / expected: mean buckets - 1, variance 2 (buckets - 1).
void check_chi_squared(const std::vector<int>& counts, double n) {
  const double expected = n / static_cast<double>(counts.size()), freedom = static_cast<double>(counts.size()) - 1;
  double chi = 0;
  for (const int count : counts) chi += (count - expected) * (count - expected) / expected;
  CHECK(std::fabs(chi - freedom) < sigmas * std::sqrt(2 * freedom));
}

}  // namespace

TEST_CASE("random: Philox4x32-10 gives the answers published with Random123") {
  using W = std::array<uint32_t, 4>;
  CHECK(words(philox4x32({{0, 0, 0, 0}}, 0, 0)) == W{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const uint32_t ones = 0xffffffff;
  CHECK(words(philox4x32({{ones, ones, ones, ones}}, ones, ones)) == W{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(words(philox4x32({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0)) ==
        W{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("random: each bit of seed, step, site and block changes about half of the output") {
  const uint64_t seed = 0x0123456789abcdef, step = 1000, block = 77;
  const uint32_t site = site_of("mlp.in.dropout");
  const Random4 base = random_bits(seed, step, site, block);
  std::vector<Random4> changed;
  for (int bit = 0; bit < 64; ++bit) changed.push_back(random_bits(seed ^ uint64_t(1) << bit, step, site, block));
  for (int bit = 0; bit < 48; ++bit) changed.push_back(random_bits(seed, step ^ uint64_t(1) << bit, site, block));
  for (int bit = 0; bit < 32; ++bit) changed.push_back(random_bits(seed, step, site ^ uint32_t(1) << bit, block));
  for (int bit = 0; bit < 48; ++bit) changed.push_back(random_bits(seed, step, site, block ^ uint64_t(1) << bit));
  std::set<std::array<uint32_t, 4>> distinct{words(base)};
  for (const Random4& other : changed) {
    distinct.insert(words(other));
    int flips = 0;
    for (int i = 0; i < 4; ++i) flips += __builtin_popcount(base.word[i] ^ other.word[i]);
    CHECK(std::abs(flips - 64) < sigmas * std::sqrt(128 * 0.25));  // 128 fair coins
  }
  CHECK(distinct.size() == 1 + 64 + 48 + 32 + 48);
}

TEST_CASE("random: the same arguments give the same words, and no two small ones share a block") {
  std::set<std::array<uint32_t, 4>> seen;
  for (uint64_t seed = 0; seed < 8; ++seed)
    for (uint64_t step = 0; step < 8; ++step)
      for (uint32_t site = 0; site < 8; ++site)
        for (uint64_t block = 0; block < 8; ++block) seen.insert(words(random_bits(seed, step, site, block)));
  CHECK(seen.size() == 8 * 8 * 8 * 8);  // also: step 3, block 5 is not step 5, block 3
  CHECK(words(random_bits(1, 2, 3, 4)) == words(random_bits(1, 2, 3, 4)));
}

TEST_CASE("random: neighbouring streams are uncorrelated") {
  const size_t n = 1 << 18;
  const std::vector<uint32_t> base = stream(1, 1, 1, n);
  const double bound = sigmas / std::sqrt(static_cast<double>(n));
  CHECK(correlation(base, base) == doctest::Approx(1).epsilon(0.01));  // the measure itself
  CHECK(std::fabs(correlation(base, stream(2, 1, 1, n))) < bound);
  CHECK(std::fabs(correlation(base, stream(1, 2, 1, n))) < bound);
  CHECK(std::fabs(correlation(base, stream(1, 1, 2, n))) < bound);
  std::vector<uint32_t> later(base.begin() + 1, base.end());
  later.push_back(base[0]);
  CHECK(std::fabs(correlation(base, later)) < bound);
}

TEST_CASE("random: uniform01 is uniform, in each of the four words, and below 1") {
  const int n = 1 << 18, buckets = 256;
  for (int word = 0; word < 4; ++word) {
    CAPTURE(word);
    std::vector<int> counts(buckets);
    double sum = 0;
    for (uint64_t block = 0; block < uint64_t(n); ++block) {
      const float u = uniform01(random_bits(7, 0, 0, block).word[word]);
      sum += u;
      ++counts[static_cast<size_t>(u * buckets)];
    }
    CHECK(std::fabs(sum / n - 0.5) < sigmas / std::sqrt(12.0 * n));
    check_chi_squared(counts, n);
  }
  CHECK(uniform01(0u) == 0);
  CHECK(uniform01(0xffffffffu) == 1 - 0x1p-24f);
  CHECK(uniform01(0u, 0u) == 0);
  CHECK(uniform01(0xffffffffu, 0xffffffffu) == 1 - 0x1p-53);
  CHECK(uniform01(0u, 1u << 11) == 0x1p-53);
}

TEST_CASE("random: normal_pair has the moments and the tails of two independent standard normals") {
  const int pairs = 1 << 19, n = 2 * pairs;
  double sum = 0, squares = 0, fourths = 0, products = 0;
  int beyond_3 = 0;
  for (int i = 0; i < pairs; ++i) {
    const Random4 r = random_bits(3, 0, 0, static_cast<uint64_t>(i));
    const NormalPair z = normal_pair(r.word[0], r.word[1]);
    for (const double v : {z.first, z.second}) {
      sum += v;
      squares += v * v;
      fourths += v * v * v * v;
      beyond_3 += std::fabs(v) > 3;
    }
    products += double(z.first) * z.second;
  }
  CHECK(std::fabs(sum / n) < sigmas / std::sqrt(n));
  CHECK(std::fabs(squares / n - 1) < sigmas * std::sqrt(2.0 / n));   // Var z^2 = 2
  CHECK(std::fabs(fourths / n - 3) < sigmas * std::sqrt(96.0 / n));  // Var z^4 = 105 - 9
  CHECK(std::fabs(products / pairs) < sigmas / std::sqrt(pairs));
  const double tail = std::erfc(3 / std::sqrt(2.0));
  CHECK(std::fabs(beyond_3 - n * tail) < sigmas * std::sqrt(n * tail));
}

TEST_CASE("random: normal_pair is finite and below 6.8 for the extreme words") {
  for (const uint32_t u : {0u, 1u, 0x7fffffffu, 0xfffffffeu, 0xffffffffu})
    for (const uint32_t v : {0u, 0x40000000u, 0xffffffffu}) {
      const NormalPair z = normal_pair(u, v);
      CHECK(std::fabs(z.first) < 6.8f);
      CHECK(std::fabs(z.second) < 6.8f);
    }
  CHECK(normal_pair(0, 0).first > 6.7f);
}

TEST_CASE("random: bounded gives each value 2^32 / n words, to within one word") {
  // Value v owns the words from ceil(v 2^32 / n) up to the first of v + 1; both ends are looked at.
  const uint64_t all = uint64_t(1) << 32;
  for (const uint32_t n : {1u, 2u, 3u, 7u, 1000u, 0x80000001u, 0xffffffffu}) {
    CAPTURE(n);
    for (const uint32_t v : {0u, 1u, n / 2, n - 1}) {
      if (v >= n) continue;
      const uint64_t first = (v * all + n - 1) / n, end = ((v + uint64_t(1)) * all + n - 1) / n;
      CHECK(bounded(static_cast<uint32_t>(first), n) == v);
      CHECK(bounded(static_cast<uint32_t>(end - 1), n) == v);
      CHECK(end - first >= all / n);
      CHECK(end - first <= all / n + 1);
    }
  }
  const uint64_t ones = ~uint64_t(0), n = 60000;
  CHECK(bounded(uint64_t(0), n) == 0);
  CHECK(bounded(ones, n) == n - 1);
  CHECK(bounded(ones, ones) == ones - 1);
  CHECK(bounded(ones / 2 + 1, n) == n / 2);
}

TEST_CASE("random: a shuffle with bounded reaches every order of five equally often") {
  const int n = 120 * 200;
  std::map<std::array<int, 5>, int> seen;
  for (int trial = 0; trial < n; ++trial) {
    std::array<int, 5> order;
    std::iota(order.begin(), order.end(), 0);
    for (uint32_t i = 4; i > 0; --i) {
      const Random4 r = random_bits(11, static_cast<uint64_t>(trial), site_of("shuffle"), i);
      std::swap(order[i], order[bounded(uint64_t(r.word[1]) << 32 | r.word[0], uint64_t(i) + 1)]);
    }
    ++seen[order];
  }
  CHECK(seen.size() == 120);
  std::vector<int> counts;
  for (const auto& [order, count] : seen) counts.push_back(count);
  check_chi_squared(counts, n);
}

TEST_CASE("random: site_of is FNV-1a with 32 bits, whatever the sign of char") {
  static_assert(site_of("") == 0x811c9dc5);
  CHECK(site_of("a") == 0xe40c292c);
  CHECK(site_of("foobar") == 0xbf9cf968);
  CHECK(site_of("\xff") == 0x7a0b824e);
  CHECK(site_of("mlp.in") != site_of("mlp.out"));
}
