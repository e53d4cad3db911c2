#include "apps/sweep/sweep_result.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "apps/sweep/pilot.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

using Status = CellResult::Status;

MedianFigure figure(const std::vector<double>& values) { return {median(values), median_interval(values)}; }

// The runs of a size that there are: those that were planned, and those with further seeds.
std::vector<std::pair<Cell, CellResult>> runs_there(const SweepState& state, std::vector<Cell> planned) {
  std::vector<std::pair<Cell, CellResult>> out;
  for (const Cell& cell : planned)
    if (const CellResult* result = state.find(cell)) out.emplace_back(cell, *result);
  if (planned.empty()) return out;
  Cell further = planned.back();
  for (++further.seed; const CellResult* result = state.find(further); ++further.seed)
    out.emplace_back(further, *result);
  return out;
}

void count(SweepSize& size) {
  for (const auto& [cell, result] : size.runs) {
    size.reached += result.status == Status::reached;
    size.missed += result.status == Status::missed;
    size.diverged += result.status == Status::diverged;
    size.failed += result.status == Status::failed;
  }
  size.n = size.reached + size.missed + size.diverged;
  if (!size.horizon) return;
  const bool passed = size.horizon->tightest().passed.has_value();
  size.reached = passed ? size.n : 0;  // all seeds together, or none
  size.missed = size.n - size.reached - (passed ? 0 : size.diverged);
}

void fill_figures(SweepSize& size, const Target& target) {
  std::vector<double> steps, examples, seconds, spent, noise, medians, p05, p95;
  const bool passed = size.horizon && size.horizon->tightest().passed;
  int64_t timed_steps = 0;
  int reached = 0;
  for (const auto& [cell, result] : size.runs) {
    if (result.status == Status::failed) continue;
    constexpr double never = std::numeric_limits<double>::infinity();
    Crossing at = crossing(result, target, cell.steps);
    if (size.horizon)  // a passage in the middle is none
      at = {passed, 0, passed ? static_cast<double>(cell.steps) : never, {}, result.examples, result.train_seconds};
    steps.push_back(at.upper);
    examples.push_back(at.reached ? static_cast<double>(at.examples) : never);
    seconds.push_back(at.reached ? at.seconds : never);
    spent.push_back(at.seconds);
    reached += at.reached;
    if (result.noise && result.noise->value) noise.push_back(*result.noise->value);
    if (result.step_ms) {
      medians.push_back(result.step_ms->median_ms), p05.push_back(result.step_ms->p05_ms);
      p95.push_back(result.step_ms->p95_ms), timed_steps += result.step_ms->n;
    }
  }
  if (steps.empty()) return;
  size.steps = figure(steps), size.examples = figure(examples), size.seconds = figure(seconds);
  if (size.horizon) size.steps->interval.reset(), size.examples->interval.reset();  // all took the same K
  size.running_time = expected_running_time(spent, reached);
  if (!noise.empty()) size.noise = figure(noise), size.noise_runs = static_cast<int>(noise.size());
  if (!medians.empty()) size.step_ms = StepTimeSummary{median(medians), median(p05), median(p95), timed_steps};
}

RuleCost rule_cost(const Tuning& tuned, double rate) {
  RuleCost out{rate, {}};
  const std::vector<RateTrial>& trials = tuned.trials;
  for (size_t i = 0; i + 1 < trials.size(); ++i) {
    const RateTrial &below = trials[i], &above = trials[i + 1];
    if (rate < below.rate * (1 - 1e-3) || rate > above.rate * (1 + 1e-3)) continue;
    const double share = std::clamp(std::log(rate / below.rate) / std::log(above.rate / below.rate), 0.0, 1.0);
    const auto at = [](const RateTrial& t) { return std::log(std::min(t.figure, t.cap)); };
    out.efficiency = tuned.figure / std::exp((1 - share) * at(below) + share * at(above));
    out.at_most = (share < 1 && std::isinf(below.figure)) || (share > 0 && std::isinf(above.figure));
    return out;
  }
  return out;
}

// Relative to the tuned rate of the reference size, or of the size nearest to it.
void fill_rules(std::vector<SweepSize>& sizes, int64_t reference) {
  const SweepSize* from = nullptr;
  const auto off = [&](const SweepSize& size) {
    return std::abs(std::log(static_cast<double>(size.batch) / static_cast<double>(reference)));
  };
  for (const SweepSize& size : sizes)
    if (size.tuned.rate && (!from || off(size) < off(*from))) from = &size;
  if (!from) return;
  const double rate = *from->tuned.rate;
  for (SweepSize& size : sizes) {
    if (!size.tuned.rate) continue;
    const double times = static_cast<double>(size.batch) / static_cast<double>(from->batch);
    size.linear = rule_cost(size.tuned, rate * times);
    size.square_root = rule_cost(size.tuned, rate * std::sqrt(times));
  }
}

TargetFit fit_runs_of(const ScalingRuns& data, const Target& target, uint64_t seed, int draws) {
  TargetFit out{target.value, {}, {}};
  const std::vector<SizeSample> sizes = group_by_size(data.runs);
  std::set<double> informative;  // an interval from 0 on says nothing of how many steps are too few
  for (const ScalingRun& run : data.runs)
    if (run.reached() && run.lower > 0) informative.insert(run.batch);
  if (can_fit(sizes) && informative.size() < 2) {
    out.why_none = "nearly all runs reached the target at their first evaluation: a tighter target is wanted";
    return out;
  }
  if (can_fit(sizes)) {
    out.fit = fit_runs(data, seed, to_text(target), draws);
    return out;
  }
  const auto reached = std::count_if(sizes.begin(), sizes.end(), [](const SizeSample& s) { return s.reached > 0; });
  out.why_none = text("a law needs 3 sizes at which a run reached the target, and there are {}", reached);
  return out;
}

// A size is one run of the law: all of its seeds together have found one K. Its interval is as wide as the grid, and
// wider than what sizes scatter by: a likelihood of such intervals has a plateau of laws that meet all of them, from
// which no draw of sizes leads away. So a size counts as the middle of its interval, and what the middles are off by is
// part of the spread.
std::optional<ScalingRun> horizon_run(const SweepState& state, int64_t batch, const TargetSearch& search, bool timed) {
  std::vector<double> seconds;
  for (const Cell& cell : search.runs)
    if (const CellResult& result = *state.find(cell); result.status != Status::failed)
      seconds.push_back(result.train_seconds);
  if (seconds.empty()) return std::nullopt;
  const auto failed = static_cast<double>(search.failed);
  ScalingRun run{static_cast<double>(batch), failed, failed, std::numeric_limits<double>::infinity()};
  if (timed) run.seconds = median(seconds);
  if (!search.passed) return run;
  const auto passed = static_cast<double>(*search.passed);
  run.steps = run.lower = run.upper = failed > 0 ? std::sqrt(failed * passed) : passed;
  run.seconds *= run.steps / passed;  // so that they are those of the steps that the law has
  return run;
}

TargetFit fit_horizons(const SweepState& state, const std::vector<SweepSize>& sizes, size_t target, bool timed,
                       int draws) {
  ScalingRuns data;
  data.has_seconds = timed, data.each = "horizon";
  for (const SweepSize& size : sizes)
    if (const auto run = horizon_run(state, size.batch, size.horizon->targets[target], timed))
      data.runs.push_back(*run);
  return fit_runs_of(data, {state.targets->metric, state.targets->values[target]},
                     static_cast<uint64_t>(state.settings.first_seed), draws);
}

TargetFit fit_target(const std::vector<SweepSize>& sizes, const Target& target, uint64_t seed, bool timed, int draws) {
  ScalingRuns data;
  data.has_seconds = timed;
  for (const SweepSize& size : sizes)
    for (const auto& [cell, result] : size.runs)
      if (result.status != Status::failed) data.runs.push_back(scaling_run(cell, result, target, timed));
  return fit_runs_of(data, target, seed, draws);
}

RunsAgain compare_again(const SweepState& state, const std::vector<SweepSize>& sizes, const Target& target,
                        bool timed) {
  RunsAgain out;
  if (!state.settings.again || !state.targets) return out;
  out.batch = again_batch(state);
  const auto at = std::find_if(sizes.begin(), sizes.end(), [&](const SweepSize& s) { return s.batch == out.batch; });
  if (at == sizes.end()) return out;
  struct Side {
    std::vector<double> steps, seconds;
    int n = 0;
    void add(const Cell& cell, const CellResult& result, const Target& target) {
      if (result.status == Status::failed) return;
      ++n;
      const Crossing at = crossing(result, target, cell.steps);
      if (at.reached) steps.push_back(at.upper), seconds.push_back(at.seconds);
    }
    int reached() const { return static_cast<int>(steps.size()); }
  } first, second;
  for (const auto& [cell, result] : at->runs) first.add(cell, result, target);
  for (const Cell& cell : runs_again(state))
    if (const CellResult* result = state.find(cell)) second.add(cell, *result, target);
  out.n = first.n, out.n_again = second.n, out.reached = first.reached(), out.reached_again = second.reached();
  if (out.reached < out.n || out.reached_again < out.n_again) return out;
  out.steps = unpaired_ratio(first.steps, second.steps);
  if (timed) out.seconds = unpaired_ratio(first.seconds, second.seconds);
  return out;
}

// The search of the middle size and the same once more.
RunsAgain search_twice(const SweepState& state, const std::vector<SweepSize>& sizes) {
  RunsAgain out;
  out.second = horizon_again(state);
  if (!out.second) return out;
  out.batch = again_batch(state);
  for (const SweepSize& size : sizes)
    if (size.batch == out.batch) out.first = size.horizon->tightest();
  out.n = state.settings.seeds;
  for (const auto& search : {out.first, out.second})
    for (const HorizonTrial& trial : search->trials) out.n = std::min(out.n, trial.n);
  return out;
}

}  // namespace

ScalingRun scaling_run(const Cell& cell, const CellResult& result, const Target& target, bool timed) {
  const Crossing at = crossing(result, target, cell.steps);
  ScalingRun run{static_cast<double>(cell.batch), at.reached ? at.upper : at.lower, at.lower, at.upper};
  // A run that diverged stopped before its cap: seconds and steps would not belong together.
  if (timed && result.status != Status::diverged) run.seconds = at.seconds;
  return run;
}

SweepResult conclude(const SweepState& state, bool timed, int draws) {
  SweepResult out;
  if (!state.targets || !pilot_cells_needed(state).empty()) return out;
  const Target tightest = state.targets->tightest();
  for (const int64_t batch : state.settings.batches) {
    SweepSize size;
    size.batch = batch;
    if (state.settings.horizon) {
      size.horizon = horizon_search(state, batch);
      size.tuned = size.horizon->tuned;
      size.runs = runs_there(state, size.horizon->tightest().runs);
    } else {
      size.tuned = tuning(state, batch);
      size.runs = runs_there(state, runs_of(state, batch, size.tuned));
    }
    count(size);
    fill_figures(size, tightest);
    out.sizes.push_back(std::move(size));
  }
  const auto seed = static_cast<uint64_t>(state.settings.first_seed);
  if (state.settings.horizon) {
    for (size_t i = 0; i < state.targets->values.size(); ++i)
      out.fits.push_back(fit_horizons(state, out.sizes, i, timed, draws));
    out.again = search_twice(state, out.sizes);
    return out;
  }
  fill_rules(out.sizes, state.settings.reference_batch);
  for (const double value : state.targets->values)
    out.fits.push_back(fit_target(out.sizes, {state.targets->metric, value}, seed, timed, draws));
  out.again = compare_again(state, out.sizes, tightest, timed);
  return out;
}

}  // namespace tapedeck
