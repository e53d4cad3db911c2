// Trainer: one run from its first step to its target or its last step, and what it came to.
#pragma once
#include <functional>
#include <optional>

#include "apps/config.h"
#include "apps/experiment.h"
#include "apps/meter.h"
#include "apps/progress.h"
#include "apps/record.h"
#include "apps/summary.h"
#include "data/loader.h"

namespace tapedeck {

class Trainer {
 public:
  // `folder` may be null: nothing is written then. `clock` runs on; data loading has been charged to it already.
  Trainer(const Config& config, const Problem& problem, Device device, TrainingClock& clock, Progress& progress,
          RunFolder* folder);

  Summary run();

  // For people: which evaluation confirmed what, why the run ended.
  const std::optional<TargetTracker>& tracker() const { return tracker_; }
  const std::string& reason() const { return reason_; }
  const Learner& learner() const { return *learner_; }

 private:
  bool take_step();     // false: the run has diverged
  bool evaluate_now();  // true: the run is over
  void log_step(double loss, double norm, double rate);
  void save_weights();
  Summary summarise();

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
  std::vector<double> losses_;  // of each step since the last epoch began, at least 100
  double logged_loss_ = 0;      // summed since the last line of metrics
  int64_t logged_steps_ = 0;
  std::optional<Score> validation_, best_;
  int64_t evaluations_without_gain_ = 0;
  std::string best_weights_;  // as a safetensors file
  std::string status_ = "done", reason_;
};

}  // namespace tapedeck
