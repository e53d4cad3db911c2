// The operations of a warp: shuffle, vote and the warp's barrier. They are one mechanism: each lane brings a value and
// waits; the last one to arrive works out the results of all.
#include <string>

#include "engine/check.h"
#include "engine/emulation/race_detector.h"
#include "engine/emulation/worker.h"

namespace tapedeck::emulation {
namespace {

std::string call_text(Operation operation, const Site& site) {
  return text("{} of {}", name_of(operation), place(site));
}

void complete(Worker& w, int index) {
  Warp& warp = w.warps[index];
  if (warp.operation == Operation::barrier) race::warp_barrier(index);
  uint32_t yes = 0;
  for (int i = 0; i < warp_lanes; ++i) yes |= static_cast<uint32_t>(warp.value[i] & 1) << i;
  for (int i = 0; i < warp_lanes; ++i)
    warp.result[i] = warp.operation == Operation::vote ? yes : warp.value[warp.source[i]];
  make_ready(w, index, warp.arrived);
  warp.arrived = 0;
}

void check_meeting(Worker& w, const Warp& warp, Operation operation, const Site& site) {
  const int base = w.current->index / warp_lanes * warp_lanes;
  if (warp.arrived != 0 && (operation != warp.operation || !same(site, warp.site)))
    fail_lane(
        w, text("is at the {}, lane {} waits at the {}: all lanes of a warp must meet at the same",
                call_text(operation, site), base + __builtin_ctz(warp.arrived), call_text(warp.operation, warp.site)));
  if (operation != Operation::barrier && warp.alive != ~0u)
    fail_lane(w, text("the {} needs all 32 lanes of the warp, but lane {} has returned", call_text(operation, site),
                      base + __builtin_ctz(~warp.alive)));
}

// Brings `value`, wants that of lane `source` of the warp. Results are read before the next operation can complete,
// since that needs this lane too, so one buffer is enough.
uint64_t meet(Operation operation, uint64_t value, int source, Site site) {
  Worker& w = running_worker(name_of(operation));
  Lane& lane = *w.current;
  Warp& warp = w.warp_of(lane);
  const int index = lane.index % warp_lanes;
  check_meeting(w, warp, operation, site);
  lane.state = State::at_warp_operation;
  lane.site = warp.site = site;
  warp.operation = operation;
  warp.value[index] = value;
  warp.source[index] = source;
  warp.arrived |= bit_of(lane);
  if (warp.arrived == warp.alive) complete(w, lane.index / warp_lanes);
  suspend(w);
  return warp.result[index];
}

}  // namespace

void lane_left_warp(Worker& w, const Lane& lane) {
  const Warp& warp = w.warp_of(lane);
  if (warp.arrived == 0) return;
  if (warp.operation != Operation::barrier) {
    const int waiting = lane.index / warp_lanes * warp_lanes + __builtin_ctz(warp.arrived);
    fail_block(w, text("{}: block {}, lane {}: has returned, but lane {} waits for it at the {}: that needs all 32 "
                       "lanes of the warp",
                       w.launch->kernel, w.block, lane.index, waiting, call_text(warp.operation, warp.site)));
  } else if (warp.arrived == warp.alive) {
    complete(w, lane.index / warp_lanes);
  }
}

void warp_barrier(Site site) { meet(Operation::barrier, 0, 0, site); }

uint32_t vote(bool yes, Site site) { return static_cast<uint32_t>(meet(Operation::vote, yes, 0, site)); }

uint64_t shuffle_bits(Shuffle kind, uint64_t bits, int operand, Site site) {
  const Operation operation = kind == Shuffle::by_index ? Operation::shuffle : Operation::shuffle_xor;
  Worker& w = running_worker(name_of(operation));
  if (operand < 0 || operand >= warp_lanes)
    fail_lane(w, text("the {} asks for {}, which is not in 0…31", call_text(operation, site), operand));
  const int index = w.current->index % warp_lanes;
  return meet(operation, bits, kind == Shuffle::by_index ? operand : index ^ operand, site);
}

}  // namespace tapedeck::emulation
