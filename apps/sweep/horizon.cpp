#include "apps/sweep/horizon.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "apps/stats.h"
#include "apps/sweep/pilot.h"

namespace tapedeck {
namespace {

constexpr int farthest = 10;  // places to either side: √2¹⁰ = 32 times

int64_t steps_at(int64_t first, int place) {
  return std::max<int64_t>(1, std::llround(static_cast<double>(first) * std::exp2(place / 2.0)));
}

std::vector<Cell> cells_of(const SweepState& state, int64_t batch, double rate, int64_t steps) {
  std::vector<Cell> cells;
  for (int i = 0; i < state.settings.seeds; ++i)
    cells.push_back({Cell::Purpose::run, batch, rate, state.settings.first_seed + i, steps});
  return cells;
}

HorizonTrial trial(const SweepState& state, const std::vector<Cell>& cells) {
  const Target target = state.targets->tightest();
  std::vector<double> metrics;
  for (const Cell& cell : cells) {
    const CellResult& result = *state.find(cell);
    if (result.status == CellResult::Status::failed) continue;
    const double worst = target.metric == "accuracy" ? 0 : std::numeric_limits<double>::infinity();
    metrics.push_back(final_metric(result, target).value_or(worst));
  }
  return judge_horizon(cells[0].steps, metrics, target);
}

}  // namespace

std::optional<double> final_metric(const CellResult& result, const Target& target) {
  if (result.status == CellResult::Status::diverged || result.curve.empty()) return std::nullopt;
  const EvaluationPoint& last = result.curve.back();
  if (target.metric == "accuracy") return last.accuracy;
  return std::isfinite(last.loss) ? std::optional(last.loss) : std::nullopt;
}

HorizonTrial judge_horizon(int64_t steps, std::span<const double> metrics, const Target& target) {
  HorizonTrial out{steps, static_cast<int>(metrics.size())};
  if (metrics.empty()) return out;
  out.mean = mean(metrics);
  const auto deviation = sample_deviation(metrics);
  const double better = target.metric == "accuracy" ? out.mean - target.value : target.value - out.mean;
  if (!deviation || !std::isfinite(out.mean)) return out;  // one run shows nothing
  if (*deviation == 0)
    out.p = better >= 0 ? 0 : 1;
  else
    out.p = 1 - student_t_cdf(better / (*deviation / std::sqrt(out.n)), out.n - 1);
  return out;
}

HorizonSearch horizon_search(const SweepState& state, int64_t batch) {
  HorizonSearch out;
  out.tuned = tuning(state, batch);
  out.needed = out.tuned.needed;
  if (!out.needed.empty() || !out.tuned.rate) return out;
  const int64_t first = steps_by_pilot(state, batch);
  std::map<int64_t, HorizonTrial> trials;
  // Whether this place passes; none: its runs are needed first, or it has none that did not fail.
  const auto passes = [&](int place) -> std::optional<bool> {
    const std::vector<Cell> cells = cells_of(state, batch, *out.tuned.rate, steps_at(first, place));
    out.needed = missing(state, cells);
    if (!out.needed.empty()) return std::nullopt;
    const HorizonTrial result = trial(state, cells);
    trials[result.steps] = result;
    if (result.passes() || !out.passed) out.runs = cells;
    return result.passes();
  };
  int place = 0;
  auto last = passes(place);
  const int direction = last && *last ? -1 : 1;  // down to the first that fails, or up to the first that passes
  while (last) {
    const int64_t steps = steps_at(first, place);
    if (*last)
      out.passed = steps;
    else
      out.failed = steps;
    if (*last != (direction < 0) || std::abs(place) == farthest || (direction < 0 && steps == 1)) break;
    last = passes(place += direction);
  }
  for (const auto& [steps, result] : trials) out.trials.push_back(result);
  if (!out.needed.empty()) out.passed.reset();
  return out;
}

}  // namespace tapedeck
