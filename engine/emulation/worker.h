// One OS thread's share of the block engine: the block that it runs now, and how its lanes take turns.
// Inside of engine/emulation only.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/emulation/block_engine.h"
#include "engine/emulation/fiber_pool.h"
#include "engine/emulation/shared_slab.h"

namespace tapedeck::emulation {

enum class State : uint8_t { ready, at_barrier, at_warp_operation, returned };

struct Lane {
  int index;  // in the block
  State state;
  Site site;     // of the call in which it waits
  Fiber* fiber;  // null before it begins and after it returns
};

enum class Operation : uint8_t { barrier, vote, shuffle, shuffle_xor };

struct Warp {
  uint32_t ready;    // bit i: lane i can run
  uint32_t alive;    // has not returned
  uint32_t arrived;  // waits in the operation, of which this is the kind and the first lane's place:
  Operation operation;
  Site site;
  uint64_t value[warp_lanes];  // what each lane brings
  int source[warp_lanes];      // whose value it wants
  uint64_t result[warp_lanes];
};

struct Abandoned {};  // thrown through a waiting lane of a failed block, to unwind its stack

struct Worker {
  Worker();

  const Launch* launch = nullptr;
  Order order = Order::forward;
  int64_t block = 0;
  std::vector<Lane> lanes;
  std::vector<Warp> warps;
  uint32_t ready_warps = 0;  // bit i: warp i has a ready lane
  int at_barrier = 0;        // lanes that wait there
  Site barrier_site{};
  int returned = 0;  // lanes
  Lane* current = nullptr;
  std::string error;  // why the block failed; empty while it has not

  FiberPool fibers;
  SharedSlab slab;

  Warp& warp_of(const Lane& lane) { return warps[lane.index / warp_lanes]; }
  bool failed() const { return !error.empty(); }
};

// The worker of the running kernel. `what` was called; throws Error outside of a kernel.
Worker& running_worker(const char* what);

inline uint32_t bit_of(const Lane& lane) { return 1u << (lane.index % warp_lanes); }

void make_ready(Worker& w, int warp, uint32_t lanes);

// The current lane waits: another one runs. Returns when it is its turn again; throws Abandoned if the block has
// failed.
void suspend(Worker& w);

// The first failure is the block's error; from now on only lanes that wait run, to unwind.
void fail_block(Worker& w, std::string message);
void note_fault(Worker& w, const std::string& message);  // of the current lane, which runs on to where it next waits
[[noreturn]] void fail_lane(Worker& w, const std::string& message);  // the same, and leaves the lane

// A lane has returned: whom this lets go on, or who waits for it in vain.
void lane_left_warp(Worker& w, const Lane& lane);

// For messages (faults.cpp).
bool same(const Site& a, const Site& b);
std::string place(const Site& site);  // "ops/softmax.cpp:12"
const char* name_of(Operation operation);
std::string stuck_text(const Worker& w);  // who waits where, and who has returned

}  // namespace tapedeck::emulation
