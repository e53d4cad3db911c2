#include "apps/scaling_law.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "apps/censored_normal.h"
#include "apps/damped_newton.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

constexpr double kBeyond = 1000;  // how far outside the sizes B_crit is looked for
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The log likelihood by θ = (log Smin, log B_crit, log σ): μ(B) = log Smin + log(1 + B_crit/B), so with the weight
// w = B_crit/(B + B_crit):  ∂μ/∂θ₁ = 1, ∂μ/∂θ₂ = w, ∂²μ/∂θ₂² = w(1 − w).
LocalView likelihood(std::span<const SizeSample> sizes, const Vector3& theta) {
  const double sigma = std::exp(theta[2]);
  LocalView out;
  for (const SizeSample& size : sizes) {
    const double ratio = std::exp(theta[1] - size.log_batch), w = ratio / (1 + ratio);
    const double mu = theta[0] + std::log1p(ratio);
    NormalTerm term = exact_terms(size.exact, size.mean, size.squares, mu, sigma);
    for (const SizeSample::Interval& run : size.intervals) {
      const NormalTerm one = censored_term(run.low, run.high, mu, sigma);
      const double t = run.times;
      term += {t * one.value, t * one.mu, t * one.tau, t * one.mu_mu, t * one.mu_tau, t * one.tau_tau};
    }
    out.value += term.value;
    out.gradient[0] += term.mu, out.gradient[1] += term.mu * w, out.gradient[2] += term.tau;
    out.hessian[0][0] += term.mu_mu;
    out.hessian[0][1] += term.mu_mu * w;
    out.hessian[1][1] += term.mu_mu * w * w + term.mu * w * (1 - w);
    out.hessian[0][2] += term.mu_tau, out.hessian[1][2] += term.mu_tau * w;
    out.hessian[2][2] += term.tau_tau;
  }
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < i; ++j) out.hessian[i][j] = out.hessian[j][i];
  return out;
}

// For a start: the middle of an interval, or its finite end.
double typical(const SizeSample::Interval& run) {
  if (std::isinf(run.high)) return run.low;
  return std::isinf(run.low) ? run.high : (run.low + run.high) / 2;
}

// Smin and σ as least squares have them for this B_crit, runs taken at their typical steps.
Vector3 start_at(std::span<const SizeSample> sizes, double log_b_crit) {
  double n = 0, sum = 0, squares = 0;
  const auto add = [&](double times, double off) {
    if (std::isfinite(off)) n += times, sum += times * off, squares += times * off * off;
  };
  for (const SizeSample& size : sizes) {
    const double shape = std::log1p(std::exp(log_b_crit - size.log_batch));
    if (size.exact > 0) add(size.exact, size.mean - shape), squares += size.squares;
    for (const SizeSample::Interval& run : size.intervals) add(run.times, typical(run) - shape);
  }
  const double variance = std::max(squares / n - sum / n * (sum / n), least_sigma * least_sigma);
  return {sum / n, log_b_crit, std::log(variance) / 2};
}

}  // namespace

bool ScalingRun::reached() const { return std::isfinite(upper); }
double ScalingRun::middle() const { return lower > 0 ? std::sqrt(lower * upper) : upper; }
ScalingRun exact_run(double batch, double steps) { return {batch, steps, steps, steps}; }
ScalingRun missed_run(double batch, double cap) { return {batch, cap, cap, kInfinity}; }

void SizeSample::add(const ScalingRun& run, double times) {
  log_batch = std::log(run.batch);
  if (run.reached()) reached += static_cast<int>(times);
  if (run.lower != run.upper) {
    intervals.push_back({std::log(run.lower), std::log(run.upper), times});
    return;
  }
  const double y = std::log(run.upper), off = y - mean;  // [Welford 1962]
  exact += times;
  mean += off * times / exact;
  squares += times * off * (y - mean);
}

std::vector<SizeSample> group_by_size(std::span<const ScalingRun> runs) {
  std::map<double, SizeSample> by_size;
  for (const ScalingRun& run : runs) {
    CHECK(run.batch > 0 && run.lower >= 0 && run.lower <= run.upper && run.upper > 0,
          "scaling law: a run of batch {} needs steps in ({}, {}], wants 0 <= lower <= upper", run.batch, run.lower,
          run.upper);
    by_size[run.batch].add(run);
  }
  std::vector<SizeSample> sizes;
  for (auto& [batch, size] : by_size) sizes.push_back(std::move(size));
  return sizes;
}

bool can_fit(std::span<const SizeSample> sizes) {
  std::set<double> different;
  for (const SizeSample& size : sizes)
    if (size.reached > 0) different.insert(size.log_batch);
  return different.size() >= 3;
}

ScalingLaw fit_scaling_law(std::span<const SizeSample> sizes, const ScalingLaw* near) {
  CHECK(can_fit(sizes),
        "scaling law: {} batch sizes, wants 3 different ones at least with a run that reached its target",
        sizes.size());
  const auto [smallest, largest] =
      std::minmax_element(sizes.begin(), sizes.end(), [](auto& a, auto& b) { return a.log_batch < b.log_batch; });
  const double low = smallest->log_batch - std::log(kBeyond), high = largest->log_batch + std::log(kBeyond);
  const Box box = {{-700, low, std::log(least_sigma)}, {700, high, std::log(100.0)}};
  const auto function = [&](const Vector3& theta) { return likelihood(sizes, theta); };

  Maximum best;
  if (near) best = maximise(function, {std::log(near->smin), std::log(near->limit), std::log(near->sigma)}, box);
  if (!best.converged) {  // from the best of a grid of B_crit: the likelihood along it may have more than one top
    constexpr int kGrid = 24, kStarts = 3;
    std::vector<std::pair<double, Vector3>> starts;
    for (int i = 0; i <= kGrid; ++i) {
      const Vector3 start = start_at(sizes, low + (high - low) * i / kGrid);
      starts.emplace_back(-function(start).value, start);
    }
    std::sort(starts.begin(), starts.end());
    best.value = -kInfinity;
    for (int i = 0; i < kStarts; ++i) {
      const Maximum found = maximise(function, starts[static_cast<size_t>(i)].second, box);
      if (found.value > best.value) best = found;
    }
  }
  ScalingLaw law = {std::exp(best.at[0]), std::exp(best.at[1]), std::exp(best.at[2])};
  law.limit = law.b_crit, law.converged = best.converged;
  if (best.at[1] > high - 0.01) law.end = ScalingLaw::End::no_floor, law.b_crit = kInfinity;
  if (best.at[1] < low + 0.01) law.end = ScalingLaw::End::flat, law.b_crit = 0;
  return law;
}

ScalingLaw fit_scaling_law(std::span<const ScalingRun> runs) { return fit_scaling_law(group_by_size(runs)); }

double log_likelihood(std::span<const SizeSample> sizes, double smin, double b_crit, double sigma) {
  return likelihood(sizes, {std::log(smin), std::log(b_crit), std::log(sigma)}).value;
}

}  // namespace tapedeck
