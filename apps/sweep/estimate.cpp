#include "apps/sweep/estimate.h"

#include <algorithm>
#include <cmath>

#include "apps/experiment.h"
#include "apps/meter.h"
#include "apps/sweep/pilot.h"
#include "apps/sweep/sweep_plan.h"
#include "engine/backend.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

double step_seconds(const Config& config, const Problem& problem, Device device, int64_t batch) {
  Learner learner(config, problem, 0, device, find_precision(config));
  const Inputs inputs = problem.throw_away(batch);
  double least = INFINITY;
  for (uint64_t step = 0; step < 5; ++step) {
    const double begin = steady_seconds();
    learner.parameters.forget_gradients();
    learn(learner, problem, inputs, {true, 0, step}, 1);
    learner.optimizer.step(0);
    backend(device).sync();
    if (step >= 2) least = std::min(least, steady_seconds() - begin);
  }
  return least;
}

// Of trials and of runs that count, as multiples of the steps to the target.
constexpr double kTrialsTake = 1.5, kConfirmed = 1.05;
constexpr int64_t kTrials = 9, kHorizons = 3;  // rates, and K for each target, that are tried at a size

struct ToCome {
  Cell cell;  // one of them, about
  int64_t count;
};

// The search is at one K, and is to try others.
int64_t left_of(const SweepSettings& s, const TargetSearch& search) {
  if (!search.runs.empty()) return 0;
  const int64_t now = search.needed.empty() ? s.seeds : std::ssize(search.needed);
  return now + std::max<int64_t>(0, kHorizons - 1 - std::ssize(search.trials)) * s.seeds;
}

bool all_tuned(const SweepState& state) {
  const auto tuned = [&](int64_t batch) { return tuning(state, batch).needed.empty(); };
  return std::all_of(state.settings.batches.begin(), state.settings.batches.end(), tuned);
}

std::vector<ToCome> trials_to_come(const SweepState& state, int64_t batch) {
  const SweepSettings& s = state.settings;
  const Tuning tuned = tuning(state, batch);
  if (tuned.needed.empty()) return {};
  const auto done = std::count_if(state.results.begin(), state.results.end(), [&](const auto& entry) {
    const Cell& cell = entry.second.first;
    return cell.purpose == Cell::Purpose::tune && cell.batch == batch;
  });
  const int64_t planned = (s.rates.empty() ? kTrials : std::ssize(s.rates)) * s.tuning_seeds;
  const int64_t steps = s.horizon ? steps_by_pilot(state, batch) : first_cap(state, batch);
  return {{{Cell::Purpose::tune, batch, 0, 0, steps}, std::max<int64_t>(std::ssize(tuned.needed), planned - done)}};
}

std::vector<ToCome> passages_to_come(const SweepState& state, int64_t batch) {
  const Tuning tuned = tuning(state, batch);
  const Cell cell{Cell::Purpose::run, batch, 0, 0, first_cap(state, batch)};
  if (!tuned.needed.empty()) return {{cell, state.settings.seeds}};
  return {{cell, std::ssize(missing(state, runs_of(state, batch, tuned)))}};
}

std::vector<ToCome> horizons_to_come(const SweepState& state, int64_t batch) {
  std::vector<ToCome> out;
  const HorizonSearch search = horizon_search(state, batch);
  if (search.tuned.needed.empty() && !search.tuned.rate) return out;
  for (const TargetSearch& one : search.targets) {
    const int64_t steps = steps_by_pilot(state, batch, {state.targets->metric, one.target});
    out.push_back({{Cell::Purpose::run, batch, 0, 0, steps}, left_of(state.settings, one)});
  }
  return out;
}

// Of the middle size, which is known once all have been tuned.
std::vector<ToCome> again_to_come(const SweepState& state) {
  const SweepSettings& s = state.settings;
  const bool known = all_tuned(state);
  const int64_t batch = !s.again ? 0 : known ? again_batch(state) : s.batches[s.batches.size() / 2];
  if (batch == 0) return {};
  Cell cell{Cell::Purpose::again, batch, 0, 0, s.horizon ? steps_by_pilot(state, batch) : first_cap(state, batch)};
  if (s.horizon) return {{cell, known ? left_of(s, *horizon_again(state)) : kHorizons * s.seeds}};
  return {{cell, known ? std::ssize(missing(state, runs_again(state))) : std::ptrdiff_t{s.seeds}}};
}

}  // namespace

Estimate::Estimate(const Config& config, const Problem& problem, Device device, const SweepSettings& settings) {
  for (const int64_t batch : settings.batches) try {
      step_[batch] =
          step_seconds(config, problem, device, batch / config.accumulate) * static_cast<double>(config.accumulate);
    } catch (const OutOfMemory&) {
      step_[batch] = 0;
    }
  Learner learner(config, problem, 0, device, find_precision(config));
  const double begin = steady_seconds();
  problem.score(learner.scoring(), problem.data().validation);
  evaluation_ = steady_seconds() - begin;
}

double Estimate::seconds(const SweepState& state, const Cell& cell) const {
  const SweepSettings& s = state.settings;
  double steps = static_cast<double>(cell.steps);
  if (state.targets && !s.cap && !s.horizon) {  // with a horizon a cell takes its steps
    const double times = cell.purpose == Cell::Purpose::tune ? kTrialsTake : kConfirmed;
    steps = std::min(steps, times * static_cast<double>(steps_by_pilot(state, cell.batch)));
  }
  const auto at = step_.find(cell.batch);
  const double step = at == step_.end() ? 0 : at->second;
  const double evaluations = std::log(std::max(2.0, steps)) / std::log(1.05);
  constexpr double kFolder = 0.15;  // to make a run's folder and its model, and to measure the machine's load
  return steps * step + evaluations * evaluation_ + kFolder;
}

double Estimate::remaining(const SweepState& state) const {
  double sum = 0;
  const auto add = [&](const std::vector<ToCome>& some) {
    for (const ToCome& one : some) sum += static_cast<double>(one.count) * seconds(state, one.cell);
  };
  for (const int64_t batch : state.settings.batches) {
    add(trials_to_come(state, batch));
    add(state.settings.horizon ? horizons_to_come(state, batch) : passages_to_come(state, batch));
  }
  add(again_to_come(state));
  return sum;
}

int64_t planned_cells(const SweepState& state) {
  const SweepSettings& s = state.settings;
  const auto sizes = std::ssize(s.batches);
  const int64_t rates = !s.tunes() ? 0 : s.rates.empty() ? s.grid_points + 2 : std::ssize(s.rates);
  const int64_t targets = state.targets ? std::ssize(state.targets->values) : s.target_count;
  const int64_t search = s.horizon ? kHorizons * s.seeds : s.seeds;  // the runs for one target
  const int64_t pilots = !s.needs_pilot() ? 0 : s.rates.empty() ? 3 : std::ssize(s.rates);
  return sizes * (rates * s.tuning_seeds + search * (s.horizon ? targets : 1)) + (s.again ? search : 0) + pilots;
}

}  // namespace tapedeck
