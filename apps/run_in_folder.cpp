#include "apps/run_in_folder.h"

#include <fmt/format.h>

#include <iostream>

#include "apps/data_record.h"
#include "apps/interrupt.h"
#include "apps/milestones.h"
#include "apps/train_report.h"
#include "apps/trainer.h"
#include "apps/underflow.h"

namespace tapedeck {

Ending train_in(RunFolder& folder, const Earlier* earlier, const Config& config, const Problem& problem, Device device,
                TrainingClock& clock) try {
  Progress progress(std::cerr, stderr_is_terminal(), config.quiet);
  Trainer trainer(config, problem, device, clock, progress, &folder, Interruption::asked);
  if (earlier) {
    check_goes_on(*earlier, config, problem);
    trainer.begin(earlier->from ? &*earlier->from : nullptr);
    record_resumption(*earlier, config, problem.data(), device);
    progress.message(earlier->from ? fmt::format("going on from {}", earlier->from->name)
                                   : "there is no checkpoint yet: beginning at the first step");
  } else {
    folder.write("data.json", data_json(problem.data()));
  }
  const Summary summary = trainer.run();
  folder.write("summary.json", to_json(summary));
  Ending end{summary, run_report(summary, trainer, problem) + milestones(folder.path() / "metrics.jsonl"),
             to_json(summary)};
  if (config.log_underflow) {
    const double scale = summary.loss_scale.final.value_or(ScalerRule().initial);
    const std::vector<LayerUnderflow> layers = underflow(config, device, trainer.learner(), scale);
    end.report += underflow_text(layers, scale);
    end.document["underflow"] = underflow_json(layers, scale);
  }
  end.report += fmt::format("saved in {}\n", folder.path().string());
  return end;
} catch (...) {
  folder.abandon();
  throw;
}

Ending train_or_go_on(const Config& config, const Problem& problem, Device device) {
  std::optional<Earlier> earlier;
  if (!config.resume.empty()) earlier.emplace(look_at_run(config));
  if (earlier && earlier->finished) return {*earlier->finished, "", to_json(*earlier->finished)};
  RunFolder folder = earlier ? std::move(earlier->folder) : RunFolder(config, device);
  TrainingClock clock;
  return train_in(folder, earlier ? &*earlier : nullptr, config, problem, device, clock);
}

}  // namespace tapedeck
