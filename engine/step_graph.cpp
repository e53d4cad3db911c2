#include "engine/step_graph.h"

#include <algorithm>

#include "engine/check.h"
#include "engine/trace.h"

namespace tapedeck {
namespace {

struct Holding {  // ends also when the capture throws
  Arena& arena;
  const std::shared_ptr<Arena::Hold>& memory;
  ~Holding() { arena.stop_holding(memory); }
};

}  // namespace

StepGraph::StepGraph(Device device, bool on)
    : device_(device), backend_(backend(device)), on_(on), memory_(std::make_shared<Arena::Hold>(backend_.arena())) {
  if (on && !backend_.can_capture())
    throw UsageError(
        text("--graph on: {} has no graphs to capture: use --graph off, or another --device", name(device)));
}

StepGraph::~StepGraph() { backend_.sync_quietly(); }

void StepGraph::capture(Step& step, const std::function<void()>& work, KernelRecorder* recorder) {
  if (!recorder) {
    step.graph = backend_.capture(work);
    return;
  }
  const Range capturing("capture");  // in the trace of this step, whose device has nothing to do meanwhile
  step.traced = std::make_unique<Tracer>(device_);
  step.traced->record_kernels(recorder);
  step.graph = backend_.capture([&] {
    const Tracer::On on(*step.traced);
    const Range range("replay");  // ends before the graph is made ready: the copies of nodes are under no mark
    work();
  });
}

bool StepGraph::runs_plainly(const Key& key) const {
  const auto step = steps_.find(key);
  return !on_ || step == steps_.end() || !step->second.ran;
}

void StepGraph::run(const Key& key, const std::function<void()>& work, KernelRecorder* recorder) {
  if (!on_) return work();
  Step& step = steps_[key];
  if (!step.graph) {
    backend_.arena().start_holding(*memory_);  // for the plain run too: it takes none beside the graphs'
    const Holding holding{backend_.arena(), memory_};
    if (!step.ran) {
      work();  // plainly once: what a device prepares at first use happens here
      step.ran = true;
      return;
    }
    capture(step, work, recorder);
  }
  Tracer* const tracer = Tracer::current();
  if (tracer && step.traced && tracer->by_kernels())
    tracer->replay(*step.traced, [&] { step.graph->replay(); });
  else
    step.graph->replay();
}

int64_t StepGraph::graphs() const {
  return std::count_if(steps_.begin(), steps_.end(), [](const auto& step) { return step.second.graph != nullptr; });
}

int64_t StepGraph::nodes() const {
  int64_t most = 0;
  for (const auto& [key, step] : steps_)
    if (step.graph) most = std::max(most, step.graph->nodes());
  return most;
}

}  // namespace tapedeck
