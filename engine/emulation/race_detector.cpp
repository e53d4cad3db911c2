#include "engine/emulation/race_detector.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "engine/check.h"
#include "engine/emulation/race_order.h"
#include "engine/emulation/race_shadow.h"
#include "engine/emulation/race_text.h"
#include "engine/emulation/worker.h"

namespace tapedeck::emulation {
namespace race {
namespace {

std::atomic<uint32_t> now{1};  // the detector's time

struct Thread;
thread_local Thread* of_this_thread = nullptr;

struct Thread {
  ~Thread() { of_this_thread = nullptr; }
  Standpoint here;
  Worker* worker = nullptr;        // while a grid runs
  std::unique_ptr<Shadow> shared;  // of the worker's slab
  size_t shared_bytes = 0;         // of which the block may use these
};

Thread& this_thread() {
  thread_local Thread thread;
  return *(of_this_thread = &thread);
}

// Instrumented code already runs while other files' globals are made, so this is there from the start …
struct DeviceMemory {
  uintptr_t base;
  size_t bytes;
  Shadow* shadow;
};
constinit DeviceMemory device{};

// … and this is never destroyed, since the last tensors are released at the very end.
struct Names {
  Buffers buffers;
  std::map<std::pair<uint32_t, uint32_t>, const char*> operations;  // by stream and position
  std::mutex mutex;
};
Names& names() {
  static Names& names = *new Names;
  return names;
}

size_t offset_in_device(const void* p) { return reinterpret_cast<uintptr_t>(p) - device.base; }

// ---- Words ---------------------------------------------------------------------------------------------------------
std::string operation_text(uint32_t stream, uint32_t position) {
  const std::lock_guard lock(names().mutex);
  const auto found = names().operations.find({stream, position});
  return text("{} (operation {} of stream {})", found == names().operations.end() ? "?" : found->second, position,
              stream);
}

std::string who(const Visit& visit, const Visit& me) {
  const std::string lane = visit.lane == no_lane ? "" : text("block {}, lane {}", visit.block, visit.lane);
  if (same_operation(visit, me)) return lane;
  return operation_text(visit.stream, visit.position) + (lane.empty() ? "" : ", " + lane);
}

const char* why(const Visit& other, const Visit& me) {
  if (!same_operation(other, me)) return "no event orders the two operations";
  if (other.block != me.block) return "blocks run in any order";
  if (same_warp(other, me)) return "lanes of a warp need a sync() between the two";
  return "the lanes need a sync() between the two";
}

std::string at_line(const Visit& visit) { return visit.code == 0 ? "" : " at " + source_line(visit.code); }

std::string rivalry(const Cell& cell, const Visit& other, const Visit& me) {
  return text("and {} {} it{}: {}", who(other, me), &other == &cell.write ? "writes" : "reads", at_line(other),
              why(other, me));
}

// Looks at one access and remembers it. Returns what is wrong with it, or nothing.
std::string examine(const Thread& t, Shadow& shadow, size_t offset, size_t bytes, const Visit& me, Access access) {
  std::string wrong;
  shadow.visit(offset, bytes, writes(access) && !me.atomic, [&](Cell& cell, size_t at) {
    const bool never_written = reads(access) && cell.write.time == 0 && me.lane != no_lane;
    const Visit* const other =
        cell.memory == Memory::live && !never_written ? rival(t.here, cell, me, access) : nullptr;
    if (cell.memory == Memory::live && !never_written && !other) {
      remember(t.here, cell, me, access);
      return true;
    }
    const bool of_device = &shadow == device.shadow;
    const std::string place = of_device ? device_place(names().buffers, at)
                                        : text("byte {} of the {} bytes of shared memory", at, t.shared_bytes);
    const std::string what = text("{} {}{}", writes(access) ? "writes" : "reads", place, at_line(me));
    if (cell.memory != Memory::live)
      wrong = text("{}: out of bounds", what);
    else if (never_written)
      wrong = text("{}: nothing was written there before", what);
    else
      wrong = text("race: {}, {}", what, rivalry(cell, *other, me));
    return false;
  });
  return wrong;
}

// The memory of a freed buffer is given out anew: whoever used it must have come before, or is overwritten as it reads.
std::string examine_reuse(const Thread& t, size_t offset, size_t bytes, const Visit& me) {
  std::string wrong;
  device.shadow->visit(offset, bytes, false, [&](Cell& cell, size_t at) {
    const Visit* const other = rival(t.here, cell, me, Access::write);
    if (other)
      wrong = text("race: {}, is given out again, {}", device_place(names().buffers, at), rivalry(cell, *other, me));
    return !other;
  });
  return wrong;
}

Visit visit_of(const Thread& t) {  // of the operation as a whole
  return {now, t.here.position, 0, 0, static_cast<uint16_t>(t.here.stream), no_lane, 0};
}

void throw_if(const Thread& t, const std::string& wrong) {
  if (!wrong.empty()) throw Error(text("{}: {}", operation_text(t.here.stream, t.here.position), wrong));
}

[[noreturn]] void host_access(size_t offset, Access access, uint32_t code) {
  std::fprintf(stderr, "host code %s %s at %s: a GPU's memory is not the host's: copy it with to() or values()\n",
               writes(access) ? "writes" : "reads", device_place(names().buffers, offset).c_str(),
               source_line(code).c_str());
  std::abort();
}

}  // namespace

// ---- From the block engine -----------------------------------------------------------------------------------------
void grid_begins(Worker& w) {
  Thread& t = this_thread();
  t.worker = &w;
  t.here.grid_began = ++now;
  const size_t room = w.slab.capacity();
  if (!t.shared || t.shared->bytes() < room) {
    t.shared = std::make_unique<Shadow>(room);
    t.shared_bytes = 0;
  }
}

void grid_ends() { this_thread().worker = nullptr; }

void block_begins() {
  Thread& t = this_thread();
  t.here.block_met = ++now;
  t.here.warp_met.fill(now);
  t.shared->set(0, t.shared_bytes, Memory::never_given);
  t.shared_bytes = t.worker->slab.bytes();
  t.shared->set(0, t.shared_bytes, Memory::live);
}

void block_barrier() { this_thread().here.block_met = ++now; }
void warp_barrier(int warp) { this_thread().here.warp_met[warp] = ++now; }

}  // namespace race

using namespace race;

void device_memory(const void* base, size_t bytes) {
  device = {reinterpret_cast<uintptr_t>(base), bytes, new Shadow(bytes)};
}

void begin_operation(const char* what, uint32_t stream, uint32_t position, const std::vector<uint32_t>& clock) {
  CHECK(position >= 1 && stream < clock.size() && clock[stream] == position,
        "race detector: {} is number {} of stream {}: positions count from 1, and its clock must say so too", what,
        position, stream);
  Thread& t = this_thread();
  t.here.stream = stream;
  t.here.position = position;
  t.here.clock = clock;
  const std::lock_guard lock(names().mutex);
  names().operations[{stream, position}] = what;
}

void device_allocated(const void* p, size_t bytes) {
  const size_t offset = offset_in_device(p);
  if (offset >= device.bytes || bytes == 0) return;
  const Thread& t = this_thread();
  const std::string wrong = examine_reuse(t, offset, bytes, visit_of(t));
  device.shadow->set(offset, bytes, Memory::live);
  Buffers& buffers = names().buffers;
  buffers.erase(buffers.lower_bound(offset), buffers.lower_bound(offset + bytes));
  buffers[offset] = {bytes, true};
  throw_if(t, wrong);
}

void device_released(const void* p, size_t bytes) {
  const size_t offset = offset_in_device(p);
  if (offset >= device.bytes || bytes == 0) return;
  device.shadow->visit(offset, bytes, false, [](Cell& cell, size_t) {
    cell.memory = Memory::freed;
    return true;
  });
  names().buffers[offset].live = false;
}

void device_access(const void* p, size_t bytes, bool write) {
  const size_t offset = offset_in_device(p);
  if (offset >= device.bytes || bytes == 0) return;
  const Thread& t = this_thread();
  throw_if(t, examine(t, *device.shadow, offset, std::min(bytes, device.bytes - offset), visit_of(t),
                      write ? Access::write : Access::read));
}

bool kernel_runs() { return of_this_thread && of_this_thread->worker && of_this_thread->worker->current; }

void instrumented_access(const void* p, size_t bytes, Access access, const void* code) {
  Thread* const t = of_this_thread;
  const auto pc = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(code));
  const bool of_device = offset_in_device(p) < device.bytes;
  if (!kernel_runs()) {
    if (of_device) host_access(offset_in_device(p), access, pc);
    return;
  }
  Worker& w = *t->worker;
  Shadow& shadow = of_device ? *device.shadow : *t->shared;
  const size_t offset = of_device ? offset_in_device(p) : static_cast<const char*>(p) - w.slab.data();
  if (offset >= shadow.bytes() || w.failed()) return;
  const bool atomic = access != Access::read && access != Access::write;
  const Visit me{now,
                 t->here.position,
                 static_cast<uint32_t>(w.block),
                 pc,
                 static_cast<uint16_t>(t->here.stream),
                 static_cast<uint16_t>(w.current->index),
                 atomic};
  const std::string wrong = examine(*t, shadow, offset, std::min(bytes, shadow.bytes() - offset), me, access);
  if (!wrong.empty()) note_fault(w, wrong);
}

}  // namespace tapedeck::emulation
