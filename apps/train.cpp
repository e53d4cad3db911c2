// tapedeck train: trains a model, saves a run folder, reports how long the target took. With --repeat, one run a seed.
// With --resume, a run that was stopped or killed goes on.
#include <fmt/format.h>

#include <iostream>

#include "apps/commands.h"
#include "apps/data_record.h"
#include "apps/interrupt.h"
#include "apps/resume.h"
#include "apps/train_report.h"
#include "apps/trainer.h"

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

void print(const Config& config, const std::string& report, const Json& document) {
  if (config.json)
    std::cout << json_text(document) << "\n";
  else
    std::cout << report;
}

int exit_code(const Summary& s) {
  if (s.status == "interrupted") return exit_interrupted;
  if (s.status == "diverged") return exit_diverged;
  if (s.status == "target not reached") return exit_target_not_reached;
  return exit_done;
}

int dry_run(const Config& config, const Problem& problem, Device device) {
  const auto model = make_model(config, problem);
  int64_t parameters = 0;
  for (const Parameter* p : model->parameters()) parameters += p->shape.count();
  const double step_flops = model->training_flops() * static_cast<double>(config.batch * config.accumulate);
  const MemoryForecast memory = forecast_memory(config, problem, device, find_precision(config));
  const double mib = 1 << 20;
  std::string report = describe(config);
  report += fmt::format("\n{} parameters, {:.4g} FLOP a step, {} steps ({} an epoch)\n", parameters, step_flops,
                        total_steps(config, problem), steps_per_epoch(config, problem));
  report += fmt::format(
      "memory at the peak of a run: {:.1f} MiB (parameters {:.1f}, gradients {:.1f}, optimizer {:.1f}, activations "
      "{:.1f}), "
      "extrapolated from two small steps\n",
      memory.peak / mib, memory.parameters / mib, memory.gradients / mib, memory.optimizer / mib,
      (memory.peak - memory.parameters - memory.gradients - memory.optimizer) / mib);
  Json document = {{"format_version", kFormatVersion},
                   {"config", to_json(config)},
                   {"parameters", parameters},
                   {"flops_per_step", step_flops},
                   {"steps", total_steps(config, problem)}};
  document["memory"] = {{"peak_bytes", memory.peak},
                        {"parameters", memory.parameters},
                        {"gradients", memory.gradients},
                        {"optimizer", memory.optimizer}};
  print(config, report, document);
  return exit_done;
}

void resume_hint(const fs::path& run) {
  std::cerr << fmt::format("go on with: tapedeck train --resume {}", run.string()) << std::endl;
}

// What the folder of a run holds for going on with it.
struct Resumption {
  RunFolder folder;
  std::optional<Summary> finished;  // then there is nothing left to do
  std::optional<Checkpoint> from;   // none: the run was stopped before its first checkpoint, and begins anew
};

Resumption take_up(const Config& config, const Problem& problem) {
  Resumption run{RunFolder::reopen(config.resume), {}, {}};
  const fs::path path = config.resume;
  const std::vector<Change> changes = changes_on_resume(config, run_config(path));
  run.finished = finished_summary(path);
  if (run.finished && goes_further(changes)) run.finished.reset();
  if (run.finished) return run;
  if (!config.force) check_same_data(path, problem.data());
  std::vector<std::string> complaints;
  run.from = Checkpoints(path).newest(complaints);
  for (const std::string& complaint : complaints) std::cerr << complaint << "\n";
  const int64_t step = run.from ? run_state(run.from->state.at("run")).step : 0;
  if (const int64_t last = total_steps(config, problem); last < step)
    throw UsageError(fmt::format("{}: is at step {} already, but --steps and --epochs end it at step {}; ask for more",
                                 config.resume, step, last));
  record_resumption(path, config, changes, run.from ? run.from->name : "");
  if (!run.from) run.folder.keep_metrics(0);
  return run;
}

struct Trained {
  Summary summary;
  std::string report;
  fs::path folder;
  bool ended_before = false;  // there was nothing left to do
};

// One seed.
Trained train_once(const Config& config, const Problem& problem, Device device, TrainingClock& clock) {
  std::optional<Resumption> earlier;
  if (!config.resume.empty()) earlier.emplace(take_up(config, problem));
  if (earlier && earlier->finished) {
    const Summary& end = *earlier->finished;
    return {end,
            fmt::format("{}: this run has ended ({} at step {}); a larger --steps or --epochs would go on with it\n",
                        config.resume, end.status, end.steps.value_or(0)),
            config.resume, true};
  }
  RunFolder folder = earlier ? std::move(earlier->folder) : RunFolder(config);
  Progress progress(std::cerr, stderr_is_terminal(), config.quiet);
  try {
    if (!earlier) folder.write("data.json", data_json(problem.data()));
    const Interruption signals;
    Trainer trainer(config, problem, device, clock, progress, &folder, Interruption::asked);
    if (earlier)
      progress.message(earlier->from ? fmt::format("going on from {}", earlier->from->name)
                                     : "there is no checkpoint yet: beginning at the first step");
    const Summary summary = trainer.run(earlier && earlier->from ? &*earlier->from : nullptr);
    folder.write("summary.json", to_json(summary));
    if (summary.status == "diverged")
      std::cerr << fmt::format("tapedeck train: seed {}: {}", config.seed, trainer.reason()) << std::endl;
    return {summary, run_report(summary, trainer, problem) + fmt::format("saved in {}\n", folder.path().string()),
            folder.path()};
  } catch (...) {
    folder.abandon();
    if (!Checkpoints(folder.path()).list().empty()) resume_hint(folder.path());
    throw;
  }
}

// Every seed in a folder of its own within the run's. Resumed, those that have ended are only read.
int train_repeat(const Config& config, const Problem& problem, Device device) {
  std::optional<RunFolder> folder;
  if (config.resume.empty()) {
    folder.emplace(config);
  } else {
    folder.emplace(RunFolder::reopen(config.resume));
    record_resumption(config.resume, config, changes_on_resume(config, run_config(config.resume)), "");
  }
  std::vector<Summary> runs;
  for (int64_t i = 0; i < config.repeat; ++i) {
    Config one = config;
    one.seed = config.seed + i;
    one.repeat = 1;
    one.out = (folder->path() / fmt::format("seed-{}", one.seed)).string();
    one.resume = fs::exists(fs::path(one.out) / "config.json") ? one.out : "";
    TrainingClock clock;
    try {
      runs.push_back(train_once(one, problem, device, clock).summary);
    } catch (...) {
      if (runs.empty()) folder->abandon();
      throw;
    }
    if (runs.back().status == "interrupted") {
      resume_hint(folder->path());
      return exit_interrupted;
    }
  }
  const Json document = repeat_json(runs);
  folder->write("summary.json", document);
  print(config, repeat_report(runs) + fmt::format("saved in {}\n", folder->path().string()), document);
  int worst = exit_done;
  for (const Summary& run : runs) worst = std::max(worst, exit_code(run));
  return worst;
}

}  // namespace

int run_train(const Config& config) {
  TrainingClock clock;
  const Device device = prepare_machine(config);
  std::optional<Problem> problem;
  {
    const auto loading = clock.enter(Phase::data);
    problem.emplace(config, device, find_precision(config));
  }
  steps_per_epoch(config, *problem);  // refuses a batch that is too large before anything is written
  if (config.dry_run) return dry_run(config, *problem, device);
  if (config.repeat > 1) return train_repeat(config, *problem, device);

  const Trained one = train_once(config, *problem, device, clock);
  Json document = {{"format_version", kFormatVersion}};
  document.update(to_json(one.summary));
  print(config, one.report, document);
  if (one.summary.status == "interrupted") resume_hint(one.folder);
  return one.ended_before ? int{exit_done} : exit_code(one.summary);
}

}  // namespace tapedeck
