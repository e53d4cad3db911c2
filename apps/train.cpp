// tapedeck train: trains a model, saves a run folder, reports how long the target took. With --repeat, one run a seed.
// With --resume, a run that was stopped or killed goes on.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/commands.h"
#include "apps/dry_run.h"
#include "apps/interrupt.h"
#include "apps/recompute_plan.h"
#include "apps/resume.h"
#include "apps/run_in_folder.h"
#include "apps/shell.h"
#include "apps/train_report.h"
#include "apps/trainer.h"
#include "engine/gpu.h"
#include "engine/trace.h"

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

int exit_code(const Summary& s) {
  if (s.status == "interrupted") return exit_interrupted;
  if (s.status == "diverged") return exit_diverged;
  if (s.status == "target not reached") return exit_target_not_reached;
  return exit_done;
}

void say_how_to_go_on(const fs::path& run) {
  std::cerr << fmt::format("go on with: tapedeck train --resume {}", shell_word(run.string())) << std::endl;
}

void say_why_diverged(const Ending& end) {
  if (end.summary.status == "diverged")
    std::cerr << fmt::format("tapedeck train: seed {}: {}", end.summary.seed.value_or(0),
                             end.summary.reason.value_or(""))
              << std::endl;
}

Problem load_problem(const Config& config, Device device, TrainingClock& clock) {
  const auto loading = clock.enter(Phase::data);
  Problem problem(config, device, find_precision(config));
  // What would be refused later is refused before anything is written.
  steps_per_epoch(config, problem);                             // a batch that is too large
  const StepGraph graph(device, graph_wanted(config, device));  // a graph where the device has none
  return problem;
}

int train_once(const Config& asked, Device device) {
  Config config = with_device_named(asked, device);
  TrainingClock clock;
  std::optional<Earlier> earlier;
  if (!config.resume.empty()) earlier.emplace(look_at_run(config));
  if (earlier && earlier->finished) {
    print_report(config, ended_report(config.resume, *earlier->finished), to_json(*earlier->finished));
    return exit_done;
  }
  const Problem problem = load_problem(config, device, clock);
  config = with_recompute_planned(config, problem, device);
  say_what_is_slow(asked);
  if (config.dry_run) return dry_run(config, problem, device);

  RunFolder folder = earlier ? std::move(earlier->folder) : RunFolder(config, device);
  const Interruption signals;
  try {
    const Ending end = train_in(folder, earlier ? &*earlier : nullptr, config, problem, device, clock);
    say_why_diverged(end);
    print_report(config, end.report, end.document);
    if (end.summary.status == "interrupted") say_how_to_go_on(folder.path());
    return exit_code(end.summary);
  } catch (const UsageError&) {
    throw;
  } catch (const Error&) {
    if (folder.has_checkpoint()) say_how_to_go_on(folder.path());
    throw;
  }
}

// Every seed in a folder of its own within the run's. Resumed, those that have ended are only read.
int train_repeat(const Config& asked, Device device) {
  Config config = with_device_named(asked, device);
  TrainingClock loading;
  const Problem problem = load_problem(config, device, loading);
  config = with_recompute_planned(config, problem, device);
  say_what_is_slow(asked);
  if (config.dry_run) return dry_run(config, problem, device);

  std::optional<Earlier> before;
  if (!config.resume.empty()) before.emplace(look_at_run(config));
  RunFolder folder = before ? std::move(before->folder) : RunFolder(config, device);
  if (before && !before->changes.empty()) record_changes(config.resume, config, before->changes);
  const Interruption signals;
  std::vector<Summary> runs;
  for (int64_t i = 0; i < config.repeat; ++i) try {
      Config one = config;
      one.seed = config.seed + i;
      one.repeat = 1;
      one.out = (folder.path() / fmt::format("seed-{}", one.seed)).string();
      one.resume = before && fs::exists(fs::path(one.out) / "config.json") ? one.out : "";
      const Ending end = train_or_go_on(one, problem, device);
      runs.push_back(end.summary);
      if (end.report.empty()) continue;  // had ended before
      say_why_diverged(end);
      folder.stands();
      if (runs.back().status == "interrupted" || (Interruption::asked() && i + 1 < config.repeat)) {
        say_how_to_go_on(folder.path());
        return exit_interrupted;
      }
    } catch (...) {
      folder.abandon();
      throw;
    }
  const Json document = repeat_json(runs);
  folder.write("summary.json", document);
  print_report(config, repeat_report(runs, problem.data()) + fmt::format("saved in {}\n", folder.path().string()),
               document);
  int worst = exit_done;
  for (const Summary& run : runs) worst = std::max(worst, exit_code(run));
  return worst;
}

}  // namespace

int run_train(const Config& config) {
  const Device device = prepare_machine(config);
  const ToldOutside told(outside_tool());
  return config.repeat > 1 ? train_repeat(config, device) : train_once(config, device);
}

}  // namespace tapedeck
