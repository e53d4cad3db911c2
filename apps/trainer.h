// Trainer: one run from its first step to its target or its last step, and what it came to.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/config.h"
#include "apps/experiment.h"
#include "apps/meter.h"
#include "apps/progress.h"
#include "apps/record.h"
#include "apps/summary.h"
#include "data/loader.h"

namespace tapedeck {

// Losses are means over examples, so that a short step does not count as much as a full one.
struct LossSum {
  int64_t examples = 0;
  double sum = 0;
  void add(const LossSum& more) { examples += more.examples, sum += more.sum; }
  double mean() const { return sum / static_cast<double>(examples); }
};

class Trainer {
 public:
  // `folder` may be null: nothing is written then. `clock` runs on; data loading has been charged to it already.
  Trainer(const Config& config, const Problem& problem, Device device, TrainingClock& clock, Progress& progress,
          RunFolder* folder);

  Summary run();  // once; a divergence is a status of the summary, any other failure throws Error

  // For people: which evaluation confirmed what, why the run ended.
  const std::optional<TargetTracker>& tracker() const { return tracker_; }
  const std::string& reason() const { return reason_; }
  const Learner& learner() const { return *learner_; }

 private:
  bool take_step();     // false: the run has diverged
  bool evaluate_now();  // true: the run is over
  void log_step(const LossSum& step, double norm, double rate);
  void save_weights();
  Summary summarise();
  void fill_memory(Summary& summary) const;

  const Config& config_;
  const Problem& problem_;
  const Device device_;
  const DType dtype_;
  TrainingClock& clock_;
  Progress& progress_;
  RunFolder* folder_;
  const Schedule schedule_;
  const int64_t epoch_steps_, last_step_;
  Loader loader_;
  std::optional<Learner> learner_;
  std::optional<TargetTracker> tracker_;

  StepTimes times_;
  int64_t step_ = 0, batches_ = 0, examples_ = 0, last_evaluation_ = 0;
  std::vector<LossSum> losses_;  // of each step since the last full epoch began, and at least 100
  LossSum logged_;               // since the last line of metrics
  std::optional<Score> validation_, best_;
  int64_t evaluations_without_gain_ = 0;
  std::string best_weights_;  // as a safetensors file
  std::string status_ = "done", reason_;
};

}  // namespace tapedeck
