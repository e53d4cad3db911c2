// Which mark each node of a CUDA graph was made under, from CUPTI's callbacks ("CUDA Profiling Tools Interface",
// callback API of CUDA 13.0). A record of a kernel has the id of its node in the graph that was made ready; its nodes
// are copies of those that were captured. GRAPHNODE_CREATED tells of every node, the copies too, in the thread that
// makes it; GRAPHNODE_CLONED of a copy and its original.
#pragma once
#include <mutex>
#include <string>

#include "engine/cuda/cupti_functions.h"
#include "engine/graph_times.h"

namespace tapedeck {

class CuptiGraphs {
 public:
  explicit CuptiGraphs(const CuptiFunctions& functions) : f_(functions) {}
  ~CuptiGraphs();
  CuptiGraphs(const CuptiGraphs&) = delete;
  CuptiGraphs& operator=(const CuptiGraphs&) = delete;

  std::string follow();                      // from now on; why it cannot, else ""
  static void capture_under(uint64_t mark);  // what this thread captures from now on; 0: nobody's
  uint64_t mark_of(uint64_t node) const;

 private:
  static void CUPTIAPI told(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId what, const void* data);
  void told(CUpti_CallbackId what, const CUpti_GraphData& graph);

  const CuptiFunctions& f_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  mutable std::mutex mutex_;  // held while nothing of CUPTI is called, which may have locks of its own
  GraphMarks marks_;
};

}  // namespace tapedeck
