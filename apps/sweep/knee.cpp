#include "apps/sweep/knee.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/check.h"

namespace tapedeck {
namespace {

struct Point {
  double step, lowest;
};

// The lowest loss so far, where it is finite.
std::vector<Point> falling(std::span<const EvaluationPoint> curve) {
  std::vector<Point> out;
  for (const EvaluationPoint& point : curve) {
    if (!std::isfinite(point.loss)) continue;
    const double lowest = out.empty() ? point.loss : std::min(out.back().lowest, point.loss);
    out.push_back({static_cast<double>(point.step), lowest});
  }
  CHECK(out.size() >= 8, "the pilot has {} evaluations with a finite loss, and its knee needs 8: more --epochs",
        out.size());
  CHECK(out.back().lowest < out.front().lowest,
        "the pilot's loss never fell below {:.4g}, where it began: try other rates (--lr or --rates), or more --epochs",
        out.front().lowest);
  return out;
}

size_t knee_index(const std::vector<Point>& points) {
  const double last = points.back().step, first_loss = points.front().lowest;
  const double fall = first_loss - points.back().lowest;
  size_t knee = points.size() - 1;
  double least = 1;  // of the line itself
  for (size_t i = 0; i < points.size(); ++i) {
    const double sum = points[i].step / last + (points[i].lowest - points.back().lowest) / fall;
    if (sum < least) least = sum, knee = i;
  }
  return knee;
}

double rounded_up(double x) {
  const double unit = std::pow(10, std::floor(std::log10(x)) - 1);
  return std::stod(fmt::format("{:.2g}", std::ceil(x / unit * (1 - 1e-12)) * unit));
}

}  // namespace

int64_t knee_step(std::span<const EvaluationPoint> curve) {
  const std::vector<Point> points = falling(curve);
  return static_cast<int64_t>(points[knee_index(points)].step);
}

std::vector<double> losses_behind_knee(std::span<const EvaluationPoint> curve, std::span<const double> multiples) {
  const std::vector<Point> points = falling(curve);
  const double knee = points[knee_index(points)].step;
  std::vector<double> out;
  for (const double multiple : multiples) {
    const auto behind =
        std::find_if(points.begin(), points.end(), [&](const Point& p) { return p.step >= multiple * knee; });
    const double loss = rounded_up((behind == points.end() ? points.back() : *behind).lowest);
    if (out.empty() || loss < out.back()) out.push_back(loss);
  }
  return out;
}

}  // namespace tapedeck
