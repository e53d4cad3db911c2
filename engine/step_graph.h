// StepGraph: work that is done again and again with the same shapes. The first call with a key runs it, the second
// captures it as a graph and replays that, and from then on calls replay, so that a step of many small kernels costs
// one launch.
//
// A replay repeats the captured calls, arguments and all. What changes from step to step (rate, counters, the place in
// the epoch) must therefore lie in the device's memory and change there, and whatever shapes the work belongs into the
// key. Work may not read values back: that is an Error which says so. Tensors that it uses must outlive the StepGraph.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <memory>

#include "engine/backend.h"

namespace tapedeck {

class StepGraph {
 public:
  using Key = std::array<int64_t, 4>;

  // off: every call runs. Throws UsageError for a device without graphs.
  StepGraph(Device device, bool on);
  ~StepGraph();  // waits for the device
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  void run(const Key& key, const std::function<void()>& work);

  bool on() const { return on_; }
  int64_t graphs() const;  // captured so far
  int64_t nodes() const;   // of the largest of them

 private:
  struct Step {
    bool ran = false;
    std::unique_ptr<Graph> graph;
  };
  Backend& backend_;
  const bool on_;
  // What the graphs use besides tensors that live on. They share it, since they run one after another.
  std::shared_ptr<Arena::Hold> memory_;
  std::map<Key, Step> steps_;
};

}  // namespace tapedeck
