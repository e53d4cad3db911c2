// tapedeck compare: two configurations side by side, over the same seeds and in turns. A time without what it does to
// the result, or the other way round, is no verdict, so it says both.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/commands.h"
#include "apps/compare_report.h"
#include "apps/compare_sides.h"
#include "apps/files.h"
#include "apps/interrupt.h"
#include "apps/machine.h"
#include "apps/recompute_plan.h"
#include "apps/train_report.h"
#include "apps/trainer.h"

namespace tapedeck {
namespace {

struct Interrupted {};

struct Run {
  Summary summary;
  std::vector<double> weights;
};

Run train(Config config, int64_t seed) {
  config.seed = seed;
  const Device device = prepare_machine(config);
  TrainingClock clock;
  const Problem problem(config, device, find_precision(config));
  Progress progress(std::cerr, stderr_is_terminal(), true);
  Trainer trainer(config, problem, device, clock, progress, nullptr, Interruption::asked);
  Run run{trainer.run(), trainer.learner().parameters.values().doubles()};
  if (run.summary.status == "interrupted") throw Interrupted();
  return run;
}

// What f returns. What it throws names the side.
template <class F>
auto of_side(const char* side, const F& f) try {
  return f();
} catch (const UsageError& error) {
  throw UsageError(fmt::format("side {}: {}", side, error.what()));
} catch (const OutOfMemory& error) {
  throw OutOfMemory(fmt::format("side {}: {}", side, error.what()));
} catch (const Error& error) {
  throw Error(fmt::format("side {}: {}", side, error.what()));
}

// A side as all of its runs begin: what can be refused is refused, a budget of recomputation has its plan, and what is
// to be known of it is said.
Config ready(const Config& config) {
  const Device device = prepare_machine(config);
  const Problem problem(config, device, find_precision(config));
  steps_per_epoch(config, problem);
  const StepGraph graph(device, graph_wanted(config, device));
  const Config planned = with_recompute_planned(config, problem, device);
  say_what_is_slow(config);
  return planned;
}

}  // namespace

int run_compare(const Config& config) try {
  if (!config.save.empty()) check_writable(config.save);
  const Load load = measure_load();
  Sides sides = compare_sides(config);
  Comparison comparison{.a = sides.named_a, .b = sides.named_b, .differences = sides.differences};
  Progress progress(std::cerr, stderr_is_terminal(), config.quiet);
  const Interruption signals("\nstopping: this batch is finished, and nothing is kept; once more leaves at once\n");
  for (const auto& [name, one] : {std::pair("a", &sides.a), {"b", &sides.b}}) {
    one->quiet = config.quiet;
    *one = of_side(name, [&side = *one] { return ready(side); });
  }
  std::vector<double> weights;  // of a, as its first seed that ended well trained them
  for (int64_t i = 0; i < config.seeds; ++i) {
    const int64_t seed = config.seed + i;
    // In turns, and every other pair the other way round, so that a machine that grows warm favours neither.
    Run a, b;
    for (const bool is_a : {i % 2 == 0, i % 2 != 0})
      (is_a ? a : b) = of_side(is_a ? "a" : "b", [&] { return train(is_a ? sides.a : sides.b, seed); });
    progress.message(fmt::format("seed {} ({} of {}): validation loss {:.4f} / {:.4f}", seed, i + 1, config.seeds,
                                 a.summary.final.validation_loss.value_or(NAN),
                                 b.summary.final.validation_loss.value_or(NAN)));
    if (weights.empty() && a.summary.status != "diverged") weights = a.weights;
    comparison.runs_a.push_back(a.summary);
    comparison.runs_b.push_back(b.summary);
  }
  comparison.outputs = compare_outputs(sides.a, sides.b, weights);
  if (const std::string other = other_function(sides.a, sides.b); !other.empty())
    comparison.no_outputs = "the sides compute other functions, or of other examples: " + other;
  else if (weights.empty())
    comparison.no_outputs = "no run of a ended well";
  Json document = compare_json(comparison);
  document["machine"] = machine_json(this_machine(), load, threads(), find_device(comparison.runs_a.front().device));
  print_report(config, compare_report(comparison), document);
  const auto diverged = [](const Summary& run) { return run.status == "diverged"; };
  const bool all_diverged = std::all_of(comparison.runs_a.begin(), comparison.runs_a.end(), diverged) ||
                            std::all_of(comparison.runs_b.begin(), comparison.runs_b.end(), diverged);
  return all_diverged ? exit_diverged : exit_done;
} catch (const Interrupted&) {
  std::cerr << "tapedeck compare: interrupted; nothing is kept of it\n";
  return exit_interrupted;
}

}  // namespace tapedeck
