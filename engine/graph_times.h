// Whose the kernels of a replayed graph are. Nothing here knows CUDA.
//
// What a replay runs was asked for long before, while the graph was captured, and all of it is asked for again by one
// call. So two marks say whose a kernel is: that of the call, which replay it was, and that of the kernel's node, what
// it was captured under. A node has the mark that was current when it was made; a graph that is made ready is a copy,
// whose nodes have those of their originals.
#pragma once
#include <unordered_map>
#include <vector>

#include "engine/kernel_times.h"

namespace tapedeck {

// Ids are never given twice (CUPTI's "unique ID of a graph node"), so nothing is ever taken out.
class GraphMarks {
 public:
  void created(uint64_t node, uint64_t mark) {  // also told of copies, before or behind cloned()
    if (mark != 0) marks_.try_emplace(node, mark);
  }
  void cloned(uint64_t node, uint64_t original) { marks_[node] = of(original); }
  uint64_t of(uint64_t node) const {  // 0: made under no mark
    const auto found = marks_.find(node);
    return found == marks_.end() ? 0 : found->second;
  }

 private:
  std::unordered_map<uint64_t, uint64_t> marks_;
};

// The intervals of one replay: captured[i] is the mark of one when it was captured, own[i] in this replay. Both grow.
struct Replay {
  uint64_t call = 0;  // the mark that the replay was asked for under
  std::vector<uint64_t> captured, own;
};
// Gives the records of these replays the replay's own marks. What is of no node that is known keeps its call's mark.
void join_replays(std::vector<KernelRecord>& records, const std::vector<Replay>& replays);

}  // namespace tapedeck
