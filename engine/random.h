// Random numbers as a pure function of (seed, step, site, block): Philox4x32-10 [Salmon et al. 2011, "Parallel random
// numbers: as easy as 1, 2, 3"]. Nothing holds random state, so replay and recompute get the same numbers for free.
//
//   philox4x32(counter, k0, k1)            4 words from a 128-bit counter and a 64-bit key: the generator itself
//   random_bits(seed, step, site, block)   4 words; element i of a tensor takes word i % 4 of block i / 4
//   site_of("mlp.in.dropout")              the 32-bit site of a path: FNV-1a, the same on every machine
//   uniform01(word)                        float in [0, 1), 24 bits
//   uniform01(high, low)                   double in [0, 1), 53 bits
//   normal_pair(word, word)                two independent standard normal floats (Box-Muller); |z| < 6.8
//   bounded(bits, n)                       integer in [0, n), for shuffles
#pragma once
#include <cmath>
#include <cstdint>
#include <string_view>

#include "engine/hd.h"
#include "engine/math.h"

namespace tapedeck {

struct Random4 {
  uint32_t word[4];
};

HD Random4 philox4x32(Random4 counter, uint32_t key0, uint32_t key1) {
  auto& [a, b, c, d] = counter.word;
  for (int round = 0; round < 10; ++round) {
    const uint64_t p = uint64_t(0xD2511F53) * a, q = uint64_t(0xCD9E8D57) * c;
    a = uint32_t(q >> 32) ^ b ^ key0;
    c = uint32_t(p >> 32) ^ d ^ key1;
    b = uint32_t(q);
    d = uint32_t(p);
    key0 += 0x9E3779B9;  // 2^32 times the golden ratio's fraction
    key1 += 0xBB67AE85;  // 2^32 (sqrt 3 - 1)
  }
  return counter;
}

// Distinct (seed, step, site, block) give distinct counters and keys while step and block are below 2^48; seed and site
// use all their bits. The key is the seed; the counter is block (48 bits), step (48), site (32).
HD Random4 random_bits(uint64_t seed, uint64_t step, uint32_t site, uint64_t block) {
  const uint32_t high = uint32_t(block >> 32 & 0xffff) | uint32_t(step >> 32 & 0xffff) << 16;
  return philox4x32({{uint32_t(block), high, uint32_t(step), site}}, uint32_t(seed), uint32_t(seed >> 32));
}

// Two paths of one model share a site with probability 2^-32 a pair; a layer that draws twice a step names two sites.
constexpr uint32_t site_of(std::string_view path) {
  uint32_t hash = 2166136261u;  // FNV-1a [Fowler, Noll, Vo]
  for (const char c : path) hash = (hash ^ uint8_t(c)) * 16777619u;
  return hash;
}

HD float uniform01(uint32_t word) { return float(word >> 8) * 0x1p-24f; }
HD double uniform01(uint32_t high, uint32_t low) { return double((uint64_t(high) << 32 | low) >> 11) * 0x1p-53; }

struct NormalPair {
  float first, second;
};

// radius sqrt(-2 ln u), angle 2 pi v [Box and Muller 1958]. u = (word + 1/2) 2^-32 is never 0.
HD NormalPair normal_pair(uint32_t u_word, uint32_t v_word) {
  const float u = float(u_word) * 0x1p-32f + 0x1p-33f;
  const float radius = std::sqrt(-2 * log(u)), angle = 6.2831853f * uniform01(v_word);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

// floor(bits n / 2^32) or / 2^64 [Lemire 2019, without the rejection]: every value has the probability 1/n up to a
// relative n / 2^32, or n / 2^64. The 64-bit form is fair for any shuffle that fits a memory. n >= 1.
HD uint32_t bounded(uint32_t bits, uint32_t n) { return uint32_t(uint64_t(bits) * n >> 32); }
HD uint64_t bounded(uint64_t bits, uint64_t n) {
#if ON_GPU
  return __umul64hi(bits, n);
#else
  return uint64_t(static_cast<unsigned __int128>(bits) * n >> 64);
#endif
}

}  // namespace tapedeck
