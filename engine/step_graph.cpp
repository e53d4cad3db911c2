#include "engine/step_graph.h"

#include <algorithm>

#include "engine/check.h"

namespace tapedeck {
namespace {

struct Holding {  // ends also when the capture throws
  Arena& arena;
  const std::shared_ptr<Arena::Hold>& memory;
  ~Holding() { arena.stop_holding(memory); }
};

}  // namespace

StepGraph::StepGraph(Device device, bool on)
    : backend_(backend(device)), on_(on), memory_(std::make_shared<Arena::Hold>(backend_.arena())) {
  if (on && !backend_.can_capture())
    throw UsageError(
        text("--graph on: {} has no graphs to capture: use --graph off, or another --device", name(device)));
}

StepGraph::~StepGraph() { backend_.sync_quietly(); }

void StepGraph::run(const Key& key, const std::function<void()>& work) {
  if (!on_) return work();
  Step& step = steps_[key];
  if (step.graph) return step.graph->replay();
  {
    backend_.arena().start_holding(*memory_);  // for the plain run too: it takes none beside the graphs'
    const Holding holding{backend_.arena(), memory_};
    if (!step.ran) {
      work();  // plainly once: what a device prepares at first use happens here
      step.ran = true;
      return;
    }
    step.graph = backend_.capture(work);
  }
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
