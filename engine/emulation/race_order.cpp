#include "engine/emulation/race_order.h"

#include <utility>

#include "engine/emulation/block_engine.h"

namespace tapedeck::emulation::race {
namespace {

// Does `before`, which came first in this run, come first in every run? `me` is what this thread does now.
bool ordered(const Standpoint& here, const Visit& before, const Visit& me) {
  if (!same_operation(before, me))
    return before.stream < here.clock.size() && before.position <= here.clock[before.stream];
  if (before.time < here.grid_began || me.lane == no_lane) return true;
  if (before.block != me.block) return false;
  if (before.lane == me.lane || before.time < here.block_met) return true;
  return same_warp(before, me) && before.time < here.warp_met[me.lane / warp_lanes];
}

bool races(const Standpoint& here, const Visit& before, const Visit& me) {
  return before.time != 0 && !(before.atomic && me.atomic) && !ordered(here, before, me);
}

}  // namespace

bool same_warp(const Visit& a, const Visit& b) {
  return a.block == b.block && a.lane / warp_lanes == b.lane / warp_lanes;
}

const Visit* rival(const Standpoint& here, const Cell& cell, const Visit& me, Access access) {
  if (races(here, cell.write, me)) return &cell.write;
  if (!writes(access)) return nullptr;
  for (const Visit* reader : {&cell.last, &cell.other_lane, &cell.other_warp, &cell.other_operation})
    if (races(here, *reader, me)) return reader;
  return nullptr;
}

void remember(const Standpoint& here, Cell& cell, const Visit& me, Access access) {
  if (writes(access)) {
    cell.write = me;
    if (me.atomic) return;  // it may be unordered with the next one, and so may be those who read before it
    cell.last = cell.other_lane = cell.other_warp = cell.other_operation = {};
    return;
  }
  const Visit last = std::exchange(cell.last, me);
  if (last.time == 0) return;
  if (!same_operation(last, me)) {
    if (!ordered(here, last, me)) cell.other_operation = last;
    cell.other_lane = cell.other_warp = {};
  } else if (!same_warp(last, me)) {
    cell.other_warp = last;
    cell.other_lane = {};
  } else if (last.lane != me.lane) {
    cell.other_lane = last;
  }
}

}  // namespace tapedeck::emulation::race
