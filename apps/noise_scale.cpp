#include "apps/noise_scale.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "apps/stats.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

constexpr size_t most_blocks = 64, least_blocks = 5;
constexpr double forgotten = 0x1p-10;  // weight of a sample: blocks are then at most a third of a half-life long

// Jackknife with blocks of unequal weight: the standard error of a statistic from its value and those without each of
// the blocks, which have these shares of the weight. n: of how many blocks of equal weight they are worth.
double standard_error(double all, const std::vector<double>& without, const std::vector<double>& shares, double n) {
  double sum = 0;
  for (size_t i = 0; i < without.size(); ++i) sum += std::pow((1 - shares[i]) * (all - without[i]), 2);
  return std::sqrt(n / (n - 1) * sum);
}

}  // namespace

std::optional<NoiseSample> noise_sample(double s1, double s2, int64_t n, int64_t b, int64_t population) {
  if (n < 2) return std::nullopt;
  CHECK(b > 0 && population >= 0, "noise scale: micro-batches of {} examples of {}", b, population);
  const double parts = static_cast<double>(n);
  NoiseSample out{(parts * s2 - s1) / (parts - 1), static_cast<double>(b) * parts * (s1 - s2) / (parts - 1)};
  if (population > 0) out.square += out.trace / static_cast<double>(population);
  return out;
}

void NoiseScale::add(const NoiseSample& sample, int64_t examples) {
  std::deque<Block>& blocks = state_.blocks;
  const double keep = std::exp2(-static_cast<double>(examples) / state_.half_life);
  for (Block& block : blocks) block.square *= keep, block.trace *= keep, block.weight *= keep;
  if (blocks.empty() || blocks.back().samples == state_.length) blocks.push_back({});
  Block& last = blocks.back();
  last.square += sample.square, last.trace += sample.trace, last.weight += 1;
  last.samples += 1;
  state_.samples += 1;
  while (!blocks.empty() && blocks.front().weight < forgotten * static_cast<double>(blocks.front().samples))
    blocks.pop_front();
  if (blocks.size() <= most_blocks) return;
  std::deque<Block> pairs;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (i % 2 == 0) pairs.push_back({});
    Block& pair = pairs.back();
    pair.square += blocks[i].square, pair.trace += blocks[i].trace, pair.weight += blocks[i].weight;
    pair.samples += blocks[i].samples;
  }
  blocks = std::move(pairs);
  state_.length *= 2;
}

std::optional<NoiseEstimate> NoiseScale::estimate() const {
  if (state_.samples == 0) return std::nullopt;
  const std::deque<Block>& blocks = state_.blocks;
  Block all;
  for (const Block& block : blocks) all.square += block.square, all.trace += block.trace, all.weight += block.weight;
  NoiseEstimate out{all.square / all.weight, all.trace / all.weight, {}, {}, {}, state_.samples};
  if (blocks.size() < least_blocks) return out;
  std::vector<double> squares, logs, shares;
  double worth = 0;
  for (const Block& block : blocks) {
    const double weight = all.weight - block.weight, square = (all.square - block.square) / weight;
    const double trace = (all.trace - block.trace) / weight;
    if (!(square > 0 && trace > 0)) return out;
    squares.push_back(square);
    logs.push_back(std::log(trace / square));
    shares.push_back(block.weight / all.weight);
    worth += shares.back() * shares.back();
  }
  worth = 1 / worth;
  const double t = student_t_quantile(0.975, std::max(1, static_cast<int>(worth) - 1));
  if (!(out.square - t * standard_error(out.square, squares, shares, worth) > 0 && out.trace > 0)) return out;
  const double half = t * standard_error(std::log(out.trace / out.square), logs, shares, worth);
  out.scale = out.trace / out.square;
  out.low = *out.scale * std::exp(-half);
  out.high = *out.scale * std::exp(half);
  return out;
}

}  // namespace tapedeck
