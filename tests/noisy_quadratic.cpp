#include "tests/noisy_quadratic.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace tapedeck {

double NoisyQuadratic::expected_loss(double rate, double batch, double steps) const {
  double sum = 0;
  for (const double h : curvatures) {
    const double shrunk = std::pow(std::abs(1 - rate * h), 2 * steps);
    sum += 0.5 * h * (shrunk + (1 - shrunk) * rate * noise / (batch * h * (2 - rate * h)));
  }
  return sum / static_cast<double>(curvatures.size());
}

double NoisyQuadratic::steps_to(double loss, double batch) const {
  double least = INFINITY;
  for (double rate = 1.99; rate > 1e-4; rate /= 1.01) {
    if (expected_loss(rate, batch, 1e9) >= loss) continue;
    double low = 0, high = 1e6;
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (expected_loss(rate, batch, middle) > loss ? low : high) = middle;
    }
    least = std::min(least, high);
  }
  return least;
}

CellResult NoisyQuadratic::run(const Cell& cell, double target) const {
  const uint64_t salt = std::hash<std::string>()(cell_name({cell.purpose, cell.batch, cell.rate, cell.seed, 0}));
  std::mt19937_64 random(seed * 0x9E3779B97F4A7C15u ^ salt);
  std::normal_distribution<double> normal;
  const size_t n = curvatures.size() * static_cast<size_t>(copies);
  std::vector<double> theta(n, 1.0);
  const double deviation = std::sqrt(noise / static_cast<double>(cell.batch));
  CellResult out;
  bool held = false;
  for (int64_t step = 1; step <= cell.steps; ++step) {
    double loss = 0;
    for (size_t i = 0; i < n; ++i) {
      const double h = curvatures[i % curvatures.size()];
      theta[i] -= cell.rate * (h * theta[i] + deviation * normal(random));
      loss += 0.5 * h * theta[i] * theta[i];
    }
    loss /= static_cast<double>(n);
    out.steps = step, out.examples = step * cell.batch;
    out.train_seconds = static_cast<double>(step) * (1e-4 + 1e-6 * static_cast<double>(cell.batch));
    if (!(loss < 1e6)) {
      out.status = CellResult::Status::diverged, out.reason = "the loss is beyond all bounds";
      return out;
    }
    if (!EvaluationPlan{}.due(step) && step != cell.steps) continue;
    out.curve.push_back({step, out.examples, out.train_seconds, loss, {}});
    if (held && loss <= target) {
      out.status = CellResult::Status::reached;
      return out;
    }
    held = loss <= target;
  }
  return out;
}

}  // namespace tapedeck
