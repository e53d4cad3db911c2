#include "engine/graph_times.h"

#include <algorithm>

namespace tapedeck {

void join_replays(std::vector<KernelRecord>& records, const std::vector<Replay>& replays) {
  std::unordered_map<uint64_t, const Replay*> by_call;
  for (const Replay& replay : replays) by_call.emplace(replay.call, &replay);
  for (KernelRecord& k : records) {
    if (k.captured == 0) continue;
    const auto found = by_call.find(k.mark);
    if (found == by_call.end()) continue;
    const std::vector<uint64_t>& captured = found->second->captured;
    const auto at = std::lower_bound(captured.begin(), captured.end(), k.captured);
    if (at != captured.end() && *at == k.captured)
      k.mark = found->second->own[static_cast<size_t>(at - captured.begin())];
  }
}

}  // namespace tapedeck
