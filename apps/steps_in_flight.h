// StepsInFlight: steps that a device has been asked for and has not reported yet. Each leaves a StepRecord in a ring of
// pinned memory, which the host reads some steps later, so that it never waits inside a step. On the CPU a step has
// happened when it has been asked for, and its record is read at once.
#pragma once
#include <deque>
#include <memory>

#include "engine/pinned.h"
#include "ops/step_state.h"

namespace tapedeck {

class StepsInFlight {
 public:
  static constexpr int64_t ring = 16;

  struct Asked {           // what the host knows of a step beforehand
    int64_t step = 0;      // from 0
    int64_t examples = 0;  // that it takes
    int64_t total = 0;     // examples of the run when it ends
    double seconds = 0;    // that an earlier process spent on it
    int64_t parts = 0;     // of one size, whose gradients are compared; 0: they differ, or nobody compares
  };
  struct Finished : Asked {
    StepRecord record;
    double loss() const;  // NaN without the sign that a processor may give it
  };

  explicit StepsInFlight(Device device);

  StepRecord* records() const { return static_cast<StepRecord*>(memory_.begin()); }
  // Steps that the host may be ahead of the device.
  int64_t lead() const { return device_ == Device::cpu ? 0 : ring / 2; }

  void begin();  // call before the first batch of each step
  bool has_begun() const { return began_ != nullptr; }
  double seconds_so_far() const;  // of the step that has begun; waits for the device
  void asked(const Asked& step);
  int64_t size() const { return std::ssize(steps_); }
  Finished next();  // waits for the first of them; `seconds` are then those of the whole step, by the device's clock

 private:
  struct Step {
    Asked asked;
    std::shared_ptr<Event> began, done;
  };
  std::shared_ptr<Event> now() const;

  const Device device_;
  Backend& backend_;
  PinnedBuffer memory_;
  std::deque<Step> steps_;
  std::shared_ptr<Event> began_;  // where the step that is being asked for begins
};

}  // namespace tapedeck
