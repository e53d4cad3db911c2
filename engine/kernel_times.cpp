#include "engine/kernel_times.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace tapedeck {

Shares share_out(const std::vector<DeviceWork>& works, int64_t begin, int64_t end, size_t owners) {
  std::vector<size_t> by_rank(works.size());
  std::iota(by_rank.begin(), by_rank.end(), size_t{0});
  std::stable_sort(by_rank.begin(), by_rank.end(), [&](size_t a, size_t b) {
    const auto rank = [](const DeviceWork& w) { return std::tuple(w.owner < 0, !w.kernel, w.begin); };
    return rank(works[a]) < rank(works[b]);
  });
  struct Boundary {
    int64_t at;
    size_t rank;
    bool begins;
  };
  std::vector<Boundary> boundaries;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    const DeviceWork& w = works[by_rank[rank]];
    const int64_t from = std::max(w.begin, begin), to = std::min(w.end, end);
    if (from >= to) continue;
    boundaries.push_back({from, rank, true});
    boundaries.push_back({to, rank, false});
  }
  std::sort(boundaries.begin(), boundaries.end(), [](const Boundary& a, const Boundary& b) { return a.at < b.at; });
  Shares shares{std::vector<int64_t>(owners), 0, {}};
  std::set<size_t> running;  // ranks
  int64_t now = begin;
  const auto until = [&](int64_t at) {
    if (at <= now) return;
    if (running.empty())
      shares.gaps.emplace_back(now, at);
    else if (const int32_t owner = works[by_rank[*running.begin()]].owner; owner >= 0)
      shares.of_owner[static_cast<size_t>(owner)] += at - now;
    else
      shares.of_nobody += at - now;
    now = at;
  };
  for (const Boundary& b : boundaries) {
    until(b.at);
    if (b.begins)
      running.insert(b.rank);
    else
      running.erase(b.rank);
  }
  until(end);
  return shares;
}

}  // namespace tapedeck
