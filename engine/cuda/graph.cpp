#include "engine/cuda/graph.h"

#include <atomic>

#include "engine/check.h"
#include "engine/cuda/error.h"
#include "engine/cuda/streams.h"

namespace tapedeck::cuda {
namespace {

std::atomic<bool>& flag() {
  static std::atomic<bool> capturing{false};
  return capturing;
}

class ReadyGraph final : public Graph {
 public:
  explicit ReadyGraph(cudaGraph_t graph) {
    check(cudaGraphGetNodes(graph, nullptr, &nodes_), "cudaGraphGetNodes");
    check(cudaGraphInstantiate(&ready_, graph, 0), "cudaGraphInstantiate");
    check(cudaGraphUpload(ready_, stream(Queue::compute)), "cudaGraphUpload");  // else the first replay pays for it
  }
  ~ReadyGraph() override {
    if (ready_) cudaGraphExecDestroy(ready_);
  }
  ReadyGraph(const ReadyGraph&) = delete;
  ReadyGraph& operator=(const ReadyGraph&) = delete;
  void replay() override { check(cudaGraphLaunch(ready_, stream(Queue::compute)), "cudaGraphLaunch"); }
  int64_t nodes() const override { return static_cast<int64_t>(nodes_); }

 private:
  size_t nodes_ = 0;
  cudaGraphExec_t ready_ = nullptr;
};

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
using Recorded = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;

cudaError_t end_capture(Recorded& recorded) {
  cudaGraph_t graph = nullptr;
  const cudaError_t status = cudaStreamEndCapture(stream(Queue::compute), &graph);
  recorded.reset(graph);
  flag() = false;
  return status;
}

}  // namespace

bool capturing() { return flag(); }

std::unique_ptr<Graph> capture(const std::function<void()>& work) {
  CHECK(!capturing(), "capture: a step is being captured already; end that one first");
  // Of this thread alone: others, which load data, may go on pinning memory and copying on the transfer queue.
  check(cudaStreamBeginCapture(stream(Queue::compute), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  flag() = true;
  Recorded recorded;
  try {
    work();
  } catch (...) {
    end_capture(recorded);
    cudaGetLastError();  // what broke the capture is on its way already
    throw;
  }
  check(end_capture(recorded), "the capture of a step");
  return std::make_unique<ReadyGraph>(recorded.get());
}

}  // namespace tapedeck::cuda
