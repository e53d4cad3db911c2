// The profiler beside a run: it traces the steps of a window and leaves the others alone. Nothing of it grows outside
// of them.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/profile_window.h"
#include "apps/trainer.h"
#include "engine/emulation/emulated_device.h"
#include "engine/kernel_times.h"
#include "engine/trace.h"

namespace tapedeck {

class ProfileSession : public StepWatch {
 public:
  ProfileSession(const ProfileWindow& window, Device device, Tracer::Clock clock = nullptr, size_t limit = 1 << 20);
  ~ProfileSession() override;
  // The device's own word of each kernel, if a trial of it succeeds: a recorder has much that may keep it from telling
  // (another profiler, rights, a driver that is older), and some of it shows in its records alone.
  void record_kernels(std::unique_ptr<KernelRecorder> recorder, const std::string& why_none = "");

  // Whether replayed steps can be profiled too: "", or why not. After record_kernels(), and tried in the same way.
  std::string follow_graphs();
  void postpone(int64_t steps) { window_.skip += steps; }  // the window; before its first step

  void begins(int64_t step) override;
  void ends(int64_t step) override;
  bool slows(int64_t step) const override { return window_.part(step) != ProfileWindow::Part::outside; }

  KernelRecorder* graphs() override { return follows_ ? recorder_.get() : nullptr; }

  bool over() const { return full_ || next_ >= window_.end(); }  // no later step is profiled
  bool full() const { return full_; }                            // the steps in the window are more than it can hold
  void finish();  // drops a step that has not ended, and reads the device's times

  const std::vector<int64_t>& steps() const { return steps_; }  // that are in the trace
  const Tracer& tracer() const { return tracer_; }
  // Where the device's times are from: "host", "logical", "events" or "cupti"; of events on a GPU also why.
  std::string times() const;
  const std::string& why_events() const { return why_events_; }
  int64_t lost() const { return lost_; }  // records of kernels that the recorder had no room for

 private:
  void start_recording();
  ProfileWindow window_;
  const Device device_;
  std::optional<emulation::LogicalTime> logical_;  // on the emulated device, in a step that is traced
  Tracer tracer_, warming_;
  std::unique_ptr<KernelRecorder> recorder_;
  std::string why_events_;
  bool recording_ = false, follows_ = false;
  int64_t lost_ = 0;
  std::optional<Tracer::On> on_;
  size_t spans_before_ = 0, moments_before_ = 0;  // of the step that is traced
  int64_t next_ = 0;
  bool full_ = false;
  std::vector<int64_t> steps_;
};

}  // namespace tapedeck
