#include "engine/emulation/block_engine.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "engine/check.h"
#include "engine/emulation/race_detector.h"
#include "engine/emulation/worker.h"

namespace tapedeck::emulation {
namespace {

thread_local Worker* running = nullptr;  // set while this thread runs a grid

struct RunningScope {
  explicit RunningScope(Worker& w) {
    running = &w;
    race::grid_begins(w);
  }
  ~RunningScope() {
    race::grid_ends();
    running = nullptr;
  }
};

int first_bit(uint32_t bits, Order order) {
  return order == Order::forward ? __builtin_ctz(bits) : 31 - __builtin_clz(bits);
}

// Takes the first lane that can run, or null.
Lane* pick(Worker& w) {
  if (w.ready_warps == 0) return nullptr;
  const int warp = first_bit(w.ready_warps, w.order);
  uint32_t& ready = w.warps[warp].ready;
  const int lane = first_bit(ready, w.order);
  ready &= ~(1u << lane);
  if (ready == 0) w.ready_warps &= ~(1u << warp);
  return &w.lanes[warp * warp_lanes + lane];
}

std::string block_text(const Worker& w) { return text("{}: block {}", w.launch->kernel, w.block); }
std::string lane_text(const Worker& w) { return text("{}, lane {}: ", block_text(w), w.current->index); }
void fail_stuck(Worker& w) { fail_block(w, block_text(w) + " cannot go on: " + stuck_text(w)); }

// Every exception ends here, on the fiber where it was thrown: the runtime keeps its records by OS thread.
void run_lane(Worker& w) {
  try {
    w.launch->lane_main(w.launch->functor, w.block, w.current->index);
  } catch (const Abandoned&) {
  } catch (const std::exception& e) {
    fail_block(w, lane_text(w) + e.what());
  } catch (...) {
    fail_block(w, lane_text(w) + "threw something that is no std::exception");
  }
}

// The current lane has returned: goes on with another. One that has not begun gets this stack, without a switch.
void leave_lane(Worker& w) {
  Lane& lane = *w.current;
  Fiber* const stack = std::exchange(lane.fiber, nullptr);
  lane.state = State::returned;
  ++w.returned;
  w.warp_of(lane).alive &= ~bit_of(lane);
  if (!w.failed()) lane_left_warp(w, lane);

  Lane* next = pick(w);
  if (!next && !w.failed() && w.returned < w.launch->lanes) {
    fail_stuck(w);
    next = pick(w);
  }
  w.current = next;
  if (next && !next->fiber) {
    next->fiber = stack;
    return;
  }
  w.fibers.give_back(stack);
  if (next)
    w.fibers.switch_to(*next->fiber);
  else
    w.fibers.switch_to_main();
}

// What a fiber does all its life: run a lane, then whichever lane it is given next.
void fiber_main() {
  Worker& w = *running;
  w.fibers.entered();
  for (;;) {
    run_lane(w);
    leave_lane(w);
  }
}

void check_shape(const Launch& launch) {
  const size_t limit = options().shared_limit;
  CHECK(launch.blocks >= 1 && launch.blocks <= INT32_MAX, "{}: {} blocks: a grid has 1 to 2^31 - 1 of them",
        launch.kernel, launch.blocks);
  CHECK(launch.lanes >= warp_lanes && launch.lanes <= 1024 && launch.lanes % warp_lanes == 0,
        "{}: {} lanes a block: take a multiple of 32 up to 1,024", launch.kernel, launch.lanes);
  CHECK(launch.shared_bytes <= limit, "{}: {} bytes of shared memory a block, the limit is {}: take smaller tiles",
        launch.kernel, launch.shared_bytes, limit);
  CHECK(!running, "{}: launched from inside a kernel: launch it from the host, after that kernel", launch.kernel);
}

void begin_grid(Worker& w, const Launch& launch) {
  w.launch = &launch;
  w.order = options().order;
  w.lanes.resize(launch.lanes);
  w.warps.resize(launch.lanes / warp_lanes);
  w.slab.resize(launch.shared_bytes);
  w.error.clear();
}

void run_block(Worker& w, int64_t block) {
  w.block = block;
  w.at_barrier = w.returned = 0;
  for (int i = 0; i < w.launch->lanes; ++i) w.lanes[i] = {i, State::ready, {}, nullptr};
  for (size_t i = 0; i < w.warps.size(); ++i) {
    w.warps[i].arrived = 0;
    w.warps[i].alive = ~0u;
    make_ready(w, static_cast<int>(i), ~0u);
  }
  w.slab.fill_fresh();
  race::block_begins();

  Fiber* const fiber = w.fibers.take();
  w.current = pick(w);
  w.current->fiber = fiber;
  w.fibers.switch_to(*fiber);  // comes back when all lanes have returned or are unwound
  if (w.failed()) return;
  if (const auto offset = w.slab.overrun())
    w.error = text("{} wrote behind its {} bytes of shared memory, first at byte {}: mend the index, or ask for more",
                   block_text(w), w.slab.bytes(), *offset);
}

}  // namespace

Worker::Worker() : fibers(fiber_main) {}

Worker& running_worker(const char* what) {
  CHECK(running, "{}: called outside of a kernel, where there are no lanes to wait for", what);
  if (running->failed()) throw Abandoned{};  // a kernel that caught the first one, or waits in a destructor
  return *running;
}

void make_ready(Worker& w, int warp, uint32_t lanes) {
  if (lanes == 0) return;
  w.warps[warp].ready |= lanes;
  w.ready_warps |= 1u << warp;
}

void suspend(Worker& w) {
  Lane* const me = w.current;
  Lane* const next = pick(w);
  if (!next) {
    fail_stuck(w);
    throw Abandoned{};
  }
  if (next != me) {
    if (!next->fiber) next->fiber = w.fibers.take();
    w.current = next;
    w.fibers.switch_to(*next->fiber);
  }
  if (w.failed()) throw Abandoned{};
  me->state = State::ready;
}

void fail_block(Worker& w, std::string message) {
  if (w.failed()) return;
  w.error = std::move(message);
  w.ready_warps = 0;
  for (Warp& warp : w.warps) warp.ready = 0;
  for (const Lane& lane : w.lanes)
    if (lane.fiber && &lane != w.current) make_ready(w, lane.index / warp_lanes, bit_of(lane));
}

void note_fault(Worker& w, const std::string& message) { fail_block(w, lane_text(w) + message); }

void fail_lane(Worker& w, const std::string& message) {
  note_fault(w, message);
  throw Abandoned{};
}

Options& options() {
  static Options options;
  return options;
}

void run_grid(const Launch& launch) {
  check_shape(launch);
  thread_local Worker worker;
  begin_grid(worker, launch);
  const RunningScope scope(worker);
  for (int64_t i = 0; i < launch.blocks && !worker.failed(); ++i)
    run_block(worker, worker.order == Order::forward ? i : launch.blocks - 1 - i);
  if (worker.failed()) throw Error(worker.error);
}

void barrier(Site site) {
  Worker& w = running_worker("barrier");
  Lane& lane = *w.current;
  if (w.at_barrier > 0 && !same(site, w.barrier_site)) {
    const auto other =
        std::find_if(w.lanes.begin(), w.lanes.end(), [](const Lane& l) { return l.state == State::at_barrier; });
    fail_lane(w,
              text("is at the barrier of {}, lane {} waits at that of {}: all lanes of a block must meet at the same",
                   place(site), other->index, place(w.barrier_site)));
  }
  lane.state = State::at_barrier;
  lane.site = w.barrier_site = site;
  if (++w.at_barrier == w.launch->lanes) {
    w.at_barrier = 0;
    race::block_barrier();
    for (size_t i = 0; i < w.warps.size(); ++i) make_ready(w, static_cast<int>(i), ~0u);
  }
  suspend(w);
}

char* shared_memory() { return running_worker("shared_memory").slab.data(); }
size_t shared_bytes() { return running_worker("shared_bytes").slab.bytes(); }

}  // namespace tapedeck::emulation
