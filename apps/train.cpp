// tapedeck train: trains a model, saves a run folder, reports how long the target took. With --repeat, one run a seed.
#include <fmt/format.h>

#include <iostream>

#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/train_report.h"
#include "apps/trainer.h"

namespace tapedeck {
namespace {

void print(const Config& config, const std::string& report, const Json& document) {
  if (config.json)
    std::cout << json_text(document) << "\n";
  else
    std::cout << report;
}

int exit_code(const Summary& s) {
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

// One seed. The report goes to `report`.
Summary train_once(const Config& config, const Problem& problem, Device device, TrainingClock& clock,
                   std::string& report) {
  RunFolder folder(config);
  Progress progress(std::cerr, stderr_is_terminal(), config.quiet);
  Trainer trainer(config, problem, device, clock, progress, &folder);
  Summary summary;
  try {
    summary = trainer.run();
  } catch (...) {
    folder.abandon();
    throw;
  }
  folder.write("summary.json", to_json(summary));
  if (summary.status == "diverged") std::cerr << "tapedeck train: " << trainer.reason() << std::endl;
  report = run_report(summary, trainer, problem) + fmt::format("saved in {}\n", folder.path().string());
  return summary;
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

  std::string report;
  if (config.repeat == 1) {
    const Summary summary = train_once(config, *problem, device, clock, report);
    Json document = {{"format_version", kFormatVersion}};
    document.update(to_json(summary));
    print(config, report, document);
    return exit_code(summary);
  }

  RunFolder folder(config);  // holds the runs, one folder a seed, and what they come to together
  std::vector<Summary> runs;
  for (int64_t i = 0; i < config.repeat; ++i) {
    Config one = config;
    one.seed = config.seed + i;
    one.repeat = 1;
    one.out = (folder.path() / fmt::format("seed-{}", one.seed)).string();
    TrainingClock own_clock;
    try {
      runs.push_back(train_once(one, *problem, device, own_clock, report));
    } catch (...) {
      if (runs.empty()) folder.abandon();
      throw;
    }
  }
  const Json document = repeat_json(runs);
  folder.write("summary.json", document);
  print(config, repeat_report(runs) + fmt::format("saved in {}\n", folder.path().string()), document);
  int worst = exit_done;
  for (const Summary& run : runs) worst = std::max(worst, exit_code(run));
  return worst;
}

}  // namespace tapedeck
