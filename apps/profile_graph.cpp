#include "apps/profile_graph.h"

#include <set>

#include "apps/device_slots.h"
#include "engine/check.h"
#include "engine/step_graph.h"
#include "ops/ops.h"

namespace tapedeck {
namespace {

struct Stopping {
  KernelRecorder& recorder;
  ~Stopping() { recorder.stop(); }
};

// The replayed op's kernels: one at least, and all behind `after`. Gives when the last one ended, or -1.
int64_t end_of_kernels(const Tracer& tracer, const Span& op, int64_t after) {
  int64_t end = -1;
  for (const KernelRecord& k : tracer.kernels()) {
    const int32_t moment = tracer.moment_of(k);
    if (moment < op.begin || moment >= op.end) continue;
    if (k.begin < after) return -1;
    end = std::max(end, k.end);
  }
  return end;
}

std::string trial(KernelRecorder& recorder, Device device) {
  Tracer tracer(device);
  tracer.record_kernels(&recorder);
  const Tensor x = Tensor::full({4096}, DType::f32, device, 1);
  StepGraph graph(device, true);
  const auto run = [&] {
    const auto work = [&] { exp(relu(x)); };
    graph.run({}, work, &recorder);
    backend(device).sync();
  };
  run(), run();  // plainly, and captured, while nothing is recorded: as before a window
  if (std::string why = recorder.start(); !why.empty()) return why;
  const Stopping stopping{recorder};
  {
    const Tracer::On on(tracer);
    const Range step("step");
    run();
  }
  tracer.take_kernels();
  int64_t ops = 0, end = 0;
  for (const Span& span : tracer.spans()) {
    if (span.kind != Span::Kind::op || !span.replayed) continue;
    ++ops;
    end = end_of_kernels(tracer, span, end);
    if (end < 0) return "libcupti did not tell which op each kernel of a trial's graph was captured in";
  }
  return ops == 2 ? "" : "the replay of a trial's graph has not the ops that were captured";
}

}  // namespace

std::string failed_graph_trial(KernelRecorder& recorder, Device device) try {
  if (std::string why = recorder.follow_graphs(); !why.empty()) return why;
  return trial(recorder, device);
} catch (const Error& error) {
  return text("a trial's graph failed ({})", error.what());
}

int64_t steps_not_replayed(const Tracer& tracer) {
  const std::vector<Span>& spans = tracer.spans();
  std::set<size_t> steps;
  for (size_t i = 0; i < spans.size(); ++i) {
    const Span& span = spans[i];
    const bool captures = span.kind == Span::Kind::range && tracer.text(span.name) == "capture";
    if (!captures && (span.kind != Span::Kind::op || span.replayed)) continue;
    size_t step = i;
    while (spans[step].parent >= 0) step = static_cast<size_t>(spans[step].parent);
    steps.insert(step);
  }
  return std::ssize(steps);
}

int64_t steps_before_replays() { return 2 * DeviceSlots::count; }

}  // namespace tapedeck
