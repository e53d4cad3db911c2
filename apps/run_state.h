// Where a run stands, besides its weights and its optimizer. A checkpoint holds all of it, so that a resumed run goes
// on bitwise as if it had never stopped.
#pragma once
#include <optional>
#include <vector>

#include "apps/meter.h"
#include "apps/noise_meter.h"
#include "apps/problem.h"
#include "ops/loss_scaler.h"
#include "ops/schedule.h"

namespace tapedeck {

// Losses are means over examples, so that a short step does not count as much as a full one.
struct LossSum {
  int64_t examples = 0;
  double sum = 0;
  void add(const LossSum& more) { examples += more.examples, sum += more.sum; }
  double mean() const { return sum / static_cast<double>(examples); }
};

struct RunState {
  int64_t step = 0, examples = 0;  // finished steps, and the examples they took
  int64_t optimizer_steps = 0;     // those that changed the weights; the device counts, a checkpoint asks it
  int64_t batches = 0;             // asked for, ever: a checkpoint hands it to the device, which counts for dropout

  struct Window {                // the step that has begun, up to --accumulate batches
    int64_t size = 0, seen = 0;  // examples it will take, and those that have been learnt from; 0: not begun
    int64_t batches = 0;
    double loss = 0;     // mean over `size`, as far as seen; gathers on the device, a checkpoint asks it
    double squares = 0;  // of the gradients of its parts, likewise; NaN: of some nobody has measured them
    double seconds = 0;
  } window;

  Schedule schedule;
  ScalerState scaler = {};      // on the device too; a checkpoint asks it
  int64_t last_evaluation = 0;  // step
  std::vector<LossSum> losses;  // of each step since the last full epoch began, and at least 100
  LossSum logged;               // since the last line of metrics
  std::optional<Score> validation, best;
  int64_t evaluations_without_gain = 0;
  std::optional<TargetTracker> tracker;
  StepTimes times;
  std::optional<NoiseMeter> noise;  // once --noise-scale was asked for
};

// As JSON, but for `losses` and `times`, which are long: they go among the tensors.
Json to_json(const RunState& state);
RunState run_state(const Json& json);  // throws nlohmann's exceptions; the checksum has said that it is as it was saved

Json to_json(const TrainingClock::Reading& reading);
TrainingClock::Reading clock_reading(const Json& json);

}  // namespace tapedeck
