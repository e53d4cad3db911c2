#include "apps/profile_session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "apps/profile_graph.h"
#include "engine/backend.h"
#include "engine/tensor.h"

namespace tapedeck {

ProfileSession::ProfileSession(const ProfileWindow& window, Device device, Tracer::Clock clock, size_t limit)
    : window_(window), device_(device), tracer_(device, clock, limit), warming_(device, clock, limit) {}

namespace {

int64_t now() { return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// One kernel, whose record must come, with the mark it was asked for under and a time at which it can have run.
std::string failed_trial(KernelRecorder& recorder, Device device) {
  if (std::string why = recorder.start(); !why.empty()) return why;
  constexpr int64_t slack = 1'000'000;  // between the clocks of host and device, whose offset is estimated: 1 ms
  const int64_t begin = now() - slack;
  const uint64_t mark = recorder.mark();
  Tensor::full({4096}, DType::f32, device, 1);
  recorder.unmark();
  backend(device).sync();
  const int64_t end = now() + slack;
  const std::vector<KernelRecord> records = recorder.take();
  recorder.stop();
  if (records.empty()) return "libcupti recorded nothing of a trial";
  const auto is_ours = [mark](const KernelRecord& k) { return k.mark == mark; };
  const auto found = std::find_if(records.begin(), records.end(), is_ours);
  if (found == records.end()) return "libcupti did not tell what a trial's kernel was asked for by";
  if (found->begin < begin || found->end < found->begin || found->end > end)
    return "libcupti's times of a trial are not those of the host";
  return "";
}

}  // namespace

void ProfileSession::record_kernels(std::unique_ptr<KernelRecorder> recorder, const std::string& why_none) {
  why_events_ = recorder ? failed_trial(*recorder, device_) : why_none;
  recorder_ = why_events_.empty() ? std::move(recorder) : nullptr;
  tracer_.record_kernels(recorder_.get());
  warming_.record_kernels(recorder_.get());
}

std::string ProfileSession::follow_graphs() {
  const std::string why = recorder_             ? failed_graph_trial(*recorder_, device_)
                          : why_events_.empty() ? "only CUPTI tells whose the kernels of a replayed graph are"
                                                : why_events_;
  follows_ = why.empty();
  return why;
}

ProfileSession::~ProfileSession() {
  on_.reset();
  if (recorder_) recorder_->stop();
}

std::string ProfileSession::times() const {
  return recorder_ ? "cupti" : device_ == Device::cpu ? "host" : device_ == Device::emulated ? "logical" : "events";
}

// Between a window's repeats nothing is recorded, so that those steps run as ever.
void ProfileSession::start_recording() {
  if (!recorder_ || std::exchange(recording_, true)) return;
  if (const std::string why = recorder_->start(); !why.empty())
    throw Error("profile: " + why + ", though it took part in earlier steps: try again, or a --window with repeat=1");
}

void ProfileSession::begins(int64_t step) {
  const ProfileWindow::Part part = window_.part(step);
  if (part == ProfileWindow::Part::outside) return;
  backend(device_).sync();  // what was asked for before is no part of this step
  if (device_ == Device::emulated) logical_.emplace(emulation::streams());  // the run's own steps have real times
  Tracer& tracer = part == ProfileWindow::Part::active ? tracer_ : warming_;
  start_recording();
  spans_before_ = tracer.spans().size(), moments_before_ = tracer.moments().size();
  on_.emplace(tracer);
  tracer.open(Span::Kind::range, "step");
}

void ProfileSession::ends(int64_t step) {
  next_ = step + 1;
  if (!on_) return;
  Tracer& tracer = *Tracer::current();
  tracer.close();
  on_.reset();
  backend(device_).sync();  // and what is asked for next finds the device idle, as the step did
  logical_.reset();
  tracer.take_kernels();
  if (recorder_) lost_ = recorder_->lost();
  if (recording_ && window_.part(step + 1) == ProfileWindow::Part::outside) {
    recorder_->stop();
    recording_ = false;
  }
  full_ = tracer.full();
  if (full_)
    tracer.clear(spans_before_, moments_before_);  // part of a step
  else if (&tracer == &tracer_)
    steps_.push_back(step);
  else
    tracer.clear();
}

void ProfileSession::finish() {
  if (on_) {
    Tracer& tracer = *Tracer::current();
    tracer.close_all();
    on_.reset();
    logical_.reset();
    tracer.clear(spans_before_, moments_before_);
  }
  if (std::exchange(recording_, false)) recorder_->stop();
  tracer_.finish();
}

}  // namespace tapedeck
