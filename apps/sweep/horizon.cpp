#include "apps/sweep/horizon.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "apps/stats.h"
#include "apps/sweep/pilot.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

constexpr int farthest = 10;  // places to either side of where a search begins: √2¹⁰ = 32 times

// The numbers of steps of a size, and the runs of each.
struct Grid {
  const SweepState& state;
  const Cell like;      // purpose, size, rate and first seed of every run; its steps are those of place 0
  const Target target;  // of the search

  int64_t steps(int place) const {
    return std::max<int64_t>(1, std::llround(static_cast<double>(like.steps) * std::exp2(place / 2.0)));
  }
  std::vector<Cell> cells(int place) const {
    std::vector<Cell> out(static_cast<size_t>(state.settings.seeds), like);
    for (size_t i = 0; i < out.size(); ++i) out[i].seed += static_cast<int64_t>(i), out[i].steps = steps(place);
    return out;
  }
  int first() const {  // the place nearest to what the pilot took to this target
    const int64_t own = steps_by_pilot(state, like.batch, target);
    return static_cast<int>(std::lround(2 * std::log2(static_cast<double>(own) / static_cast<double>(like.steps))));
  }
};

HorizonTrial trial(const SweepState& state, const std::vector<Cell>& cells, const Target& target) {
  std::vector<double> metrics;
  for (const Cell& cell : cells) {
    const CellResult& result = *state.find(cell);
    if (result.status == CellResult::Status::failed) continue;
    const double worst = target.metric == "accuracy" ? 0 : std::numeric_limits<double>::infinity();
    metrics.push_back(final_metric(result, target).value_or(worst));
  }
  return judge_horizon(cells[0].steps, metrics, target);
}

TargetSearch search(const Grid& grid) {
  TargetSearch out{grid.target.value};
  std::map<int64_t, HorizonTrial> trials;
  // Whether this place passes; none: its runs are needed first, or it has none that did not fail.
  const auto passes = [&](int place) -> std::optional<bool> {
    const std::vector<Cell> cells = grid.cells(place);
    out.needed = missing(grid.state, cells);
    if (!out.needed.empty()) return std::nullopt;
    const HorizonTrial result = trial(grid.state, cells, grid.target);
    trials[result.steps] = result;
    if (result.passes() || !out.passed) out.runs = cells;
    if (result.n == 0) return std::nullopt;
    return result.passes();
  };
  const int first = grid.first();
  int place = first;
  auto last = passes(place);
  const int direction = last && *last ? -1 : 1;  // down to the first that fails, or up to the first that passes
  while (last) {
    const int64_t steps = grid.steps(place);
    if (*last)
      out.passed = steps;
    else
      out.failed = steps;
    if (*last != (direction < 0) || std::abs(place - first) == farthest || (direction < 0 && steps == 1)) break;
    last = passes(place += direction);
  }
  for (const auto& [steps, result] : trials) out.trials.push_back(result);
  if (!out.needed.empty()) out.passed.reset(), out.runs.clear();
  return out;
}

Cell first_run(const SweepState& state, Cell::Purpose purpose, int64_t batch, double rate) {
  const int64_t seed = state.settings.first_seed + (purpose == Cell::Purpose::again ? again_seed : 0);
  return {purpose, batch, rate, seed, steps_by_pilot(state, batch)};
}

}  // namespace

std::optional<double> final_metric(const CellResult& result, const Target& target) {
  if (result.status == CellResult::Status::diverged || result.curve.empty()) return std::nullopt;
  const EvaluationPoint& last = result.curve.back();
  if (target.metric == "accuracy") return last.accuracy;
  return std::isfinite(last.loss) ? std::optional(last.loss) : std::nullopt;
}

double margin_to_pass(int n) {
  return n < 2 ? std::numeric_limits<double>::infinity() : student_t_quantile(0.99, n - 1) / std::sqrt(n);
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
  std::set<std::string> names;
  for (const double value : state.targets->values) {
    out.targets.push_back({value});
    if (!out.tuned.needed.empty() || !out.tuned.rate) continue;
    const Cell first = first_run(state, Cell::Purpose::run, batch, *out.tuned.rate);
    out.targets.back() = search({state, first, {state.targets->metric, value}});
    for (const Cell& cell : out.targets.back().needed)
      if (names.insert(cell_name(cell)).second) out.needed.push_back(cell);
  }
  return out;
}

TargetSearch search_again(const SweepState& state, int64_t batch, double rate) {
  return search({state, first_run(state, Cell::Purpose::again, batch, rate), state.targets->tightest()});
}

std::string TargetSearch::interval() const {
  if (!ended() || (!passed && failed == 0)) return "n/a";
  return passed ? text("({}, {}]", failed, *passed) : text("more than {}", failed);
}

std::optional<HorizonDifference> difference(const TargetSearch& first, const TargetSearch& second) {
  if (!first.ended() || !second.ended() || (!first.passed && !second.passed)) return {};
  const auto below = [](const TargetSearch& one, const TargetSearch& other) {  // its interval ends before the other's
    return one.passed && *one.passed <= other.failed;
  };
  const bool up = below(first, second);
  if (!up && !below(second, first)) return HorizonDifference{};
  const TargetSearch &fewer = up ? first : second, &more = up ? second : first;
  // From one K that passed to the other; what passed nowhere would at the earliest a place behind its last.
  const auto last = static_cast<double>(more.passed.value_or(more.failed)), passed = static_cast<double>(*fewer.passed);
  const int places = static_cast<int>(std::lround(2 * std::log2(last / passed))) + (more.passed ? 0 : 1);
  return HorizonDifference{(up ? 1 : -1) * std::max(1, places), !more.passed};
}

}  // namespace tapedeck
