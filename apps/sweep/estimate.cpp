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

// Rates that are tried at a size, and runs that count: as multiples of the steps to the target.
constexpr double kTrialsTake = 1.5, kTrials = 9, kConfirmed = 1.05;
constexpr double kHorizons = 3;  // that are tried at a size

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
  if (state.targets && !s.cap) {
    const double times = cell.purpose == Cell::Purpose::tune ? kTrialsTake : kConfirmed;
    steps = std::min(steps, times * static_cast<double>(steps_by_pilot(state, cell.batch)));
  }
  const auto at = step_.find(cell.batch);
  const double step = at == step_.end() ? 0 : at->second;
  const double evaluations = std::log(std::max(2.0, steps)) / std::log(1.05);
  constexpr double kFolder = 0.15;  // to make a run's folder and its model, and to measure the machine's load
  return steps * step + evaluations * evaluation_ + kFolder;
}

double Estimate::remaining(SweepState state) const {
  const SweepSettings& s = state.settings;
  double sum = 0;
  for (const int64_t batch : s.batches) {
    const Tuning tuned = tuning(state, batch);
    const int64_t cap = first_cap(state, batch);
    Cell cell{Cell::Purpose::tune, batch, 0, 0, cap};
    const double tried = std::min(kTrials, static_cast<double>(tuned.trials.size()));
    const bool tunes = s.tunes() && !tuned.rate;
    if (tunes) sum += (kTrials - tried) * s.tuning_seeds * seconds(state, cell);
    cell.purpose = Cell::Purpose::run;
    const double runs = s.horizon    ? kHorizons * s.seeds
                        : tuned.rate ? static_cast<double>(missing(state, runs_of(state, batch, tuned)).size())
                                     : static_cast<double>(tunes ? s.seeds : 0);
    sum += runs * seconds(state, cell);
  }
  return sum;
}

int64_t planned_cells(const SweepState& state) {
  const SweepSettings& s = state.settings;
  const auto sizes = static_cast<int64_t>(s.batches.size());
  const int64_t rates = !s.tunes() ? 0 : s.rates.empty() ? s.grid_points + 2 : static_cast<int64_t>(s.rates.size());
  const int64_t pilots = !s.needs_pilot() ? 0 : s.rates.empty() ? 3 : static_cast<int64_t>(s.rates.size());
  return sizes * (rates * s.tuning_seeds + s.seeds) + (s.again ? s.seeds : 0) + pilots;
}

}  // namespace tapedeck
