// What orders two accesses, and what a cell of the race detector's shadow remembers of them.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "engine/emulation/race_detector.h"
#include "engine/emulation/race_shadow.h"

namespace tapedeck::emulation::race {

// Where a thread stands: the operation that it runs, and when what it runs last met. The detector's time counts the
// meetings of lanes and the beginnings of blocks and grids. Lanes take turns, so an access before a meeting has a lower
// time than one after it, and times alone tell whether a barrier stands between two accesses.
struct Standpoint {
  uint32_t stream = 0, position = 0;
  std::vector<uint32_t> clock;  // of its operation, see begin_operation()
  uint32_t grid_began = 0, block_met = 0;
  std::array<uint32_t, 32> warp_met{};
};

inline bool same_operation(const Visit& a, const Visit& b) { return a.stream == b.stream && a.position == b.position; }
bool same_warp(const Visit& a, const Visit& b);

inline bool reads(Access a) { return a == Access::read || a == Access::atomic_read || a == Access::atomic_update; }
inline bool writes(Access a) { return a != Access::read && a != Access::atomic_read; }

// The visit with which `me`, made now, races; null where all that matter are ordered before it in every run.
const Visit* rival(const Standpoint& here, const Cell& cell, const Visit& me, Access access);

// After it was found to have no rival.
void remember(const Standpoint& here, Cell& cell, const Visit& me, Access access);

}  // namespace tapedeck::emulation::race
