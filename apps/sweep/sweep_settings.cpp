#include "apps/sweep/sweep_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/experiment.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

std::vector<int64_t> sizes(const Config& config, int64_t examples, const std::string& data) {
  std::vector<int64_t> out = config.batches;
  std::sort(out.begin(), out.end());
  if (const auto twice = std::adjacent_find(out.begin(), out.end()); twice != out.end())
    throw UsageError(fmt::format("--batches: {} is given twice; give it once", *twice));
  if (config.origin("batches") == Origin::fallback)
    out.erase(std::remove_if(out.begin(), out.end(), [&](int64_t batch) { return batch > examples; }), out.end());
  for (const int64_t batch : out) {
    if (batch > examples)
      throw UsageError(fmt::format("--batches {}: {} has only {} training examples: leave out what is larger", batch,
                                   data, examples));
    if (batch % config.accumulate != 0)
      throw UsageError(fmt::format("--batches {}: --accumulate {} cannot cut it into equal parts: use multiples of {}",
                                   batch, config.accumulate, config.accumulate));
  }
  if (out.empty())
    throw UsageError(fmt::format("--batches: {} has only {} training examples, fewer than the smallest size; say which",
                                 data, examples));
  return out;
}

void check_together(const Config& c) {
  if (c.schedule == "constant" && c.horizon)
    throw UsageError(
        "--horizon: a constant rate knows no end; use --schedule cosine or linear, or leave --horizon out");
  if (c.horizon && c.origin("steps") != Origin::fallback)
    throw UsageError(
        "--horizon finds the steps of its runs by itself; leave --steps out, or say --epochs for the pilot's");
  if (c.horizon && c.budget)
    throw UsageError("--horizon and --budget: more seeds would change which horizons pass; leave one of them out");
  if (c.horizon && c.seeds < 2) throw UsageError("--horizon: one seed shows no mean; use --seeds 2 or more");
  if (c.schedule != "constant" && !c.horizon)
    throw UsageError(
        fmt::format("--schedule {}: a first passage is judged with a rate that does not know the end: use --schedule "
                    "constant, or --horizon",
                    c.schedule));
  if (c.parallel > 1 && !c.part.empty())
    throw UsageError(fmt::format("--parallel {} and --part {}: a part runs its cells one at a time; use one of them",
                                 c.parallel, c.part));
  if (c.parallel > 1 && c.budget)
    throw UsageError("--budget and --parallel: the budget is of cells that run one at a time; leave one of them out");
}

}  // namespace

SweepSettings sweep_settings(const Config& config, const Problem& problem) {
  check_together(config);
  const int64_t examples = std::ssize(problem.data().train);
  SweepSettings out;
  out.batches = sizes(config, examples, problem.data().name);
  out.seeds = static_cast<int>(config.seeds);
  out.first_seed = config.seed;
  // The quick preset is for small data, whose runs differ most, and for cheap ones.
  out.tuning_seeds = config.preset == "publication" ? 6 : config.preset == "standard" ? 3 : 4;
  for (const double rate : config.rates) out.rates.push_back(rounded_rate(rate));
  std::sort(out.rates.begin(), out.rates.end());
  if (const auto twice = std::adjacent_find(out.rates.begin(), out.rates.end()); twice != out.rates.end())
    throw UsageError(fmt::format("--rates: {} is given twice (4 digits count); give it once", *twice));
  const bool plain = config.optimizer == "sgd" || config.optimizer == "momentum" || config.optimizer == "lars";
  out.alpha = plain ? 1 : 0.5;
  out.reference_batch = config.batch * config.accumulate;
  out.reference_rate = rounded_rate(config.lr);
  out.pilot_steps = total_steps(config, problem);
  if (config.origin("steps") != Origin::fallback) out.cap = config.steps;
  if (!config.targets.empty()) {
    out.targets = given_targets(config.targets);
    if (out.targets->metric == "accuracy" && config.loss == "mse")
      throw UsageError(fmt::format("--targets {}: --loss mse has no accuracy; use loss=NUMBER", out.targets->text()));
  }
  out.horizon = config.horizon;
  out.target_count = config.preset == "quick" ? 1 : 3;
  out.again = config.again == "on";
  return out;
}

}  // namespace tapedeck
