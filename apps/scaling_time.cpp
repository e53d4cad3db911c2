#include "apps/scaling_time.h"

#include <cmath>
#include <limits>
#include <map>

#include "apps/stats.h"

namespace tapedeck {

std::optional<TimeLaw> fit_time(std::span<const ScalingRun> runs, const ScalingLaw& law) {
  struct Size {
    std::vector<double> step, seconds;
  };
  std::map<double, Size> by_size;
  TimeLaw out;
  for (const ScalingRun& run : runs)
    if (run.seconds > 0) {
      Size& size = by_size[run.batch];
      size.step.push_back(run.seconds / run.steps);
      size.seconds.push_back(run.reached() ? run.seconds : std::numeric_limits<double>::infinity());
      ++out.runs;
    }
  if (by_size.size() < 2) return std::nullopt;
  out.sizes = by_size.size(), out.smallest = by_size.begin()->first, out.largest = by_size.rbegin()->first;

  std::vector<double> batches, steps;
  for (const auto& [batch, size] : by_size) batches.push_back(batch), steps.push_back(median(size.step));
  out.cost = fit_step_cost(batches, steps);
  out.best_batch = std::sqrt(out.cost.balance() * law.limit);
  const double root = std::sqrt(out.cost.fixed * law.smin) + std::sqrt(out.cost.per_example * law.emin());
  out.best_seconds = root * root;

  for (const auto& [batch, size] : by_size) {
    const double seconds = median(size.seconds);
    if (std::isinf(seconds) || (out.measured && seconds >= out.measured_seconds)) continue;
    out.measured = true, out.measured_batch = batch, out.measured_seconds = seconds;
  }
  if (out.measured) out.predicted_there = out.seconds(law, out.measured_batch);
  return out;
}

}  // namespace tapedeck
