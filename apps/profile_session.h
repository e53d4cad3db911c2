// The profiler beside a run: it traces the steps of a window and leaves the others alone. Nothing of it grows outside
// of them.
#pragma once
#include <optional>
#include <vector>

#include "apps/profile_window.h"
#include "apps/trainer.h"
#include "engine/emulation/emulated_device.h"
#include "engine/trace.h"

namespace tapedeck {

class ProfileSession : public StepWatch {
 public:
  ProfileSession(const ProfileWindow& window, Device device, Tracer::Clock clock = nullptr, size_t limit = 1 << 20);

  void begins(int64_t step) override;
  void ends(int64_t step) override;
  bool slows(int64_t step) const override { return window_.part(step) != ProfileWindow::Part::outside; }

  bool over() const { return full_ || next_ >= window_.end(); }  // no later step is profiled
  bool full() const { return full_; }                            // the steps in the window are more than it can hold
  void finish();  // drops a step that has not ended, and reads the device's times

  const std::vector<int64_t>& steps() const { return steps_; }  // that are in the trace
  const Tracer& tracer() const { return tracer_; }

 private:
  const ProfileWindow window_;
  const Device device_;
  std::optional<emulation::LogicalTime> logical_;  // on the emulated device, in a step that is traced
  Tracer tracer_, warming_;
  std::optional<Tracer::On> on_;
  size_t spans_before_ = 0, moments_before_ = 0;  // of the step that is traced
  int64_t next_ = 0;
  bool full_ = false;
  std::vector<int64_t> steps_;
};

}  // namespace tapedeck
