// StepGraph: work that is done again and again with the same shapes. The first call with a key runs it, the second
// captures it as a graph and replays that, and from then on calls replay, so that a step of many small kernels costs
// one launch.
//
// A replay repeats the captured calls, arguments and all. What changes from step to step (rate, counters, the place in
// the epoch) must therefore lie in the device's memory and change there, and whatever shapes the work belongs into the
// key. Work may not read values back: that is an Error which says so. Tensors that it uses must outlive the StepGraph.
//
// A replay has no ops. Where a recorder follows graphs, what is captured is traced then, once, and a replay that is
// traced is that again with its own times.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <memory>

#include "engine/backend.h"

namespace tapedeck {

class KernelRecorder;
class Tracer;

class StepGraph {
 public:
  using Key = std::array<int64_t, 4>;

  // off: every call runs. Throws UsageError for a device without graphs.
  StepGraph(Device device, bool on);
  ~StepGraph();  // waits for the device
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  // `recorder`: that of whoever traces the replays, which follows graphs; null: nobody does.
  void run(const Key& key, const std::function<void()>& work, KernelRecorder* recorder = nullptr);

  bool on() const { return on_; }
  bool runs_plainly(const Key& key) const;  // the next call with it asks for its work as ever
  int64_t graphs() const;                   // captured so far
  int64_t nodes() const;                    // of the largest of them

 private:
  struct Step {
    bool ran = false;
    std::unique_ptr<Graph> graph;
    std::unique_ptr<Tracer> traced;  // while it was captured; null: nobody follows
  };
  void capture(Step& step, const std::function<void()>& work, KernelRecorder* recorder);
  const Device device_;
  Backend& backend_;
  const bool on_;
  // What the graphs use besides tensors that live on. They share it, since they run one after another.
  std::shared_ptr<Arena::Hold> memory_;
  std::map<Key, Step> steps_;
};

}  // namespace tapedeck
