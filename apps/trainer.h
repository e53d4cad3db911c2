// Trainer: one run from its first step, or from a checkpoint, to its target or its last step, and what it came to.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "apps/checkpoint.h"
#include "apps/config.h"
#include "apps/experiment.h"
#include "apps/feed.h"
#include "apps/progress.h"
#include "apps/record.h"
#include "apps/run_state.h"
#include "apps/steps_in_flight.h"
#include "apps/summary.h"
#include "engine/step_graph.h"

namespace tapedeck {

// Who looks at single steps: what is around all of a step's work. Nothing is asked for in between. The step's own
// seconds begin before and end behind it.
class StepWatch {
 public:
  virtual ~StepWatch() = default;
  virtual void begins(int64_t step) = 0;  // counted from 0
  virtual void ends(int64_t step) = 0;
  virtual bool slows(int64_t step) const = 0;  // its time says nothing of the others, and counts in no throughput
  // Where it looks at replayed steps: what follows graphs as they are captured.
  virtual KernelRecorder* graphs() { return nullptr; }
};

class Trainer {
 public:
  using Stop = std::function<bool()>;  // asked before every batch; true: save and come back

  // `folder` may be null: nothing is written then. `clock` runs on; data loading has been charged to it already.
  Trainer(
      const Config& config, const Problem& problem, Device device, TrainingClock& clock, Progress& progress,
      RunFolder* folder, Stop stop = [] { return false; });

  // Warms up and makes the model; from a checkpoint of the same model and optimizer the run then goes on bitwise. Where
  // its length has changed, the progress says the old and the new. Throws Error when the checkpoint does not fit.
  void begin(const Checkpoint* from = nullptr);

  // Once; begins first where nobody has. A divergence and an interruption are statuses of the summary, any other
  // failure throws Error.
  Summary run();

  void watch(StepWatch& watch) { watch_ = &watch; }  // must outlive run()

  Checkpoint checkpoint();  // of where the run stands

  // For people: which evaluation confirmed what, why the run ended.
  const std::optional<TargetTracker>& tracker() const { return state_.tracker; }
  const std::string& reason() const { return reason_; }
  const Learner& learner() const { return *learner_; }
  const RunState& state() const { return state_; }
  int64_t last_step() const { return last_step_; }

 private:
  void train();                // until the run is over; throws Stopped
  void ask_for_batch();        // forward and backward of one batch, and behind the last of a step its update
  bool settle(int64_t ahead);  // takes in steps that have finished until so many are left; false: the run has diverged
  bool take_in(const StepsInFlight::Finished& step);
  std::string overflow_text(const StepRecord& done);  // why no scale helped; runs a batch again
  void evaluate_now();
  bool evaluation_due() const;
  bool over() const;  // the target is confirmed or patience is at its end
  void log_step(const StepsInFlight::Finished& step);
  int64_t noise_parts() const;  // of the step whose last batch has been asked for
  Score score(std::span<const int32_t> rows) const;  // throws Stopped when asked to

  bool checkpoint_due() const;
  bool save_checkpoint();  // false: weights are not finite, nothing was saved
  void restore(const Checkpoint& from);
  void restore_tensors(const Checkpoint& from);
  void restore_schedule(const Schedule& in_effect);
  Summary finish();  // scores and saves, as far as the status allows
  void conclude();   // the status and the reason that the run ends with
  void save_weights();
  Summary summary() const;
  void fill_memory(Summary& summary) const;

  const Config& config_;
  const Problem& problem_;
  const Device device_;
  const DType dtype_;
  const ScalerRule scaler_;
  TrainingClock& clock_;
  Progress& progress_;
  RunFolder* folder_;
  const Stop stop_;
  const int64_t epoch_steps_, epoch_examples_, last_step_;

  std::optional<Learner> learner_;
  std::optional<Feed> feed_;
  StepsInFlight in_flight_;
  std::optional<StepGraph> graph_;  // dies before what its graphs use
  RunState state_;
  std::string best_weights_;  // as a safetensors file
  std::string status_ = "done", reason_;
  std::optional<Score> test_;
  StepWatch* watch_ = nullptr;
  struct {
    double seconds = 0;
    int64_t examples = 0;
  } slowed_;  // by whoever watches

  size_t data_bytes_ = 0;           // of the device, that the feed takes
  int64_t saved_bytes_ = 0;         // the most that a forward pass saved for its backward pass
  double load_seconds_before_ = 0;  // of earlier processes of this run
  int64_t metrics_bytes_ = 0;
  std::string saved_;     // name of the last checkpoint
  double last_save_ = 0;  // steady_seconds
};

}  // namespace tapedeck
