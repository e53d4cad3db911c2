#include "apps/damped_newton.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace tapedeck {
namespace {

constexpr int kMostEvaluations = 200;
constexpr double kSettled = 1e-10;  // a step shorter than this ends the search
constexpr double kBeside = 1e-9;    // a parameter so near a side of the box stands on it

using Matrix3 = std::array<Vector3, 3>;

// The x with A x = b for a positive definite A; none where it is not [Cholesky].
std::optional<Vector3> solve(const Matrix3& a, const Vector3& b) {
  Matrix3 l = {};
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (size_t k = 0; k < j; ++k) sum -= l[i][k] * l[j][k];
      if (i != j) {
        l[i][j] = sum / l[j][j];
      } else {
        if (!(sum > 1e-13 * std::abs(a[i][i]))) return std::nullopt;
        l[i][i] = std::sqrt(sum);
      }
    }
  Vector3 y = {}, x = {};
  for (size_t i = 0; i < 3; ++i) {
    y[i] = b[i];
    for (size_t k = 0; k < i; ++k) y[i] -= l[i][k] * y[k];
    y[i] /= l[i][i];
  }
  for (size_t i = 3; i-- > 0;) {
    x[i] = y[i];
    for (size_t k = i + 1; k < 3; ++k) x[i] -= l[k][i] * x[k];
    x[i] /= l[i][i];
  }
  return x;
}

// The step x with (−H + damping·D) x = gradient over the parameters that are not held, D the scale of each, cut short
// at the first side of the box that it meets: clamped one by one, parameters that belong together would part. None
// where the matrix is not definite.
std::optional<Vector3> step(const LocalView& here, const Vector3& at, const Box& box, double damping) {
  std::array<bool, 3> held = {};
  for (size_t i = 0; i < 3; ++i)
    held[i] = (at[i] < box.low[i] + kBeside && here.gradient[i] <= 0) ||
              (at[i] > box.high[i] - kBeside && here.gradient[i] >= 0);
  for (;;) {
    Matrix3 a = {};
    Vector3 g = {};
    for (size_t i = 0; i < 3; ++i) {
      g[i] = held[i] ? 0 : here.gradient[i];
      for (size_t j = 0; j < 3; ++j)
        if (!held[i] && !held[j]) a[i][j] = -here.hessian[i][j];
      a[i][i] = held[i] ? 1 : a[i][i] + damping * std::max(std::abs(here.hessian[i][i]), 1e-6);
    }
    std::optional<Vector3> x = solve(a, g);
    if (!x) return x;
    double share = 1;
    bool more_held = false;
    for (size_t i = 0; i < 3; ++i) {
      const double room = (*x)[i] > 0 ? box.high[i] - at[i] : box.low[i] - at[i];
      if (std::abs((*x)[i]) <= std::abs(room)) continue;
      if (std::abs(room) < kBeside)
        more_held = held[i] = true;
      else
        share = std::min(share, room / (*x)[i]);
    }
    if (more_held) continue;
    for (double& part : *x) part *= share;
    return x;
  }
}

}  // namespace

Maximum maximise(const std::function<LocalView(const Vector3&)>& function, Vector3 start, const Box& box) {
  Maximum best;
  for (size_t i = 0; i < 3; ++i) best.at[i] = std::clamp(start[i], box.low[i], box.high[i]);
  LocalView here = function(best.at);
  best.value = here.value, best.evaluations = 1;
  double damping = 0;
  while (best.evaluations < kMostEvaluations) {
    const auto harder = [&] { damping = damping == 0 ? 1e-3 : damping * 8; };
    if (damping > 1e12) {  // not even the smallest step gains: at the top, as far as doubles can tell
      best.converged = true;
      break;
    }
    const std::optional<Vector3> move = step(here, best.at, box, damping);
    if (!move) {
      harder();
      continue;
    }
    Vector3 next = best.at;
    double moved = 0, promised = 0;
    for (size_t i = 0; i < 3; ++i) {
      next[i] = std::clamp(best.at[i] + (*move)[i], box.low[i], box.high[i]);
      moved = std::max(moved, std::abs(next[i] - best.at[i]));
      promised += here.gradient[i] * (next[i] - best.at[i]);
    }
    if (moved < kSettled || (damping == 0 && std::abs(promised) < 1e-13 * (1 + std::abs(here.value)))) {
      best.converged = true;
      break;
    }
    const LocalView there = function(next);
    ++best.evaluations;
    if (std::isfinite(there.value) && there.value > here.value) {
      best.at = next, here = there, best.value = there.value;
      damping = damping < 1e-3 ? 0 : damping / 16;
    } else {
      harder();
    }
  }
  return best;
}

}  // namespace tapedeck
