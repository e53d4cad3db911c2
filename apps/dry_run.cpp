#include "apps/dry_run.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/cli.h"
#include "apps/experiment.h"
#include "apps/train_report.h"

namespace tapedeck {

int dry_run(const Config& config, const Problem& problem, Device device) {
  const auto model = make_model(config, problem);
  int64_t parameters = 0;
  for (const Parameter* p : model->parameters()) parameters += p->shape.count();
  const double step_flops = model->training_flops() * static_cast<double>(config.batch * config.accumulate);
  const MemoryForecast memory = forecast_memory(config, problem, device, find_precision(config));
  const double mib = 1 << 20;
  const size_t known = memory.parameters + memory.gradients + memory.optimizer + memory.data + memory.saved;
  std::string report = describe(config);
  report += fmt::format("\n{} parameters, {:.4g} FLOP a step, {} steps ({} an epoch)\n", parameters, step_flops,
                        total_steps(config, problem), steps_per_epoch(config, problem));
  report += fmt::format(
      "memory at the peak of a run: {:.1f} MiB (parameters {:.1f}, gradients {:.1f}, optimizer {:.1f}, data {:.1f}, "
      "saved activations {:.1f}, workspace {:.1f}), extrapolated from small steps\n",
      memory.peak / mib, memory.parameters / mib, memory.gradients / mib, memory.optimizer / mib, memory.data / mib,
      memory.saved / mib, (static_cast<double>(memory.peak) - static_cast<double>(known)) / mib);
  Json document = {{"format_version", kFormatVersion},
                   {"config", to_json(config)},
                   {"parameters", parameters},
                   {"flops_per_step", step_flops},
                   {"steps", total_steps(config, problem)}};
  document["memory"] = {{"peak_bytes", memory.peak},     {"parameters", memory.parameters},
                        {"gradients", memory.gradients}, {"optimizer", memory.optimizer},
                        {"data", memory.data},           {"saved_activations", memory.saved}};
  print_report(config, report, document);
  return exit_done;
}

}  // namespace tapedeck
