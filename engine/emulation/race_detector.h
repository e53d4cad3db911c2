// The race detector of the emulated device, in the race build (cmake -DTAPEDECK_RACE=ON, `make test-race`). There g++
// puts a call before every load and store of the kernel files (-fsanitize=thread), and race_hooks.cpp answers these
// calls in place of ThreadSanitizer's runtime. So unchanged kernel source is watched, and what goes wrong is an Error
// with kernel, block, lane, the line, and who else was at that place:
//   race           two accesses of one byte, at least one of them a write, that nothing orders. Lanes are ordered by
//   the
//                  barriers of their warp and block, blocks by the end of their grid, operations by queues and events.
//                  Shuffles and votes order nothing; two atomic accesses are no race.
//   unwritten      a kernel reads device or shared memory that nobody has written
//   out of bounds  device memory that was freed or never given out, shared memory behind its size
//   early reuse    memory is given out again while an operation that nothing orders may still use its last buffer
//
// Not seen: order by fences and atomics (a "last block done" counter is reported as a race); other queues' reads
// further back than the last one; what a replayed graph could do in another order than it did. One OS thread at a time
// may use the emulated device's memory. In other builds all of this is empty.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tapedeck::emulation {

struct Worker;

#if defined(TAPEDECK_RACE)

constexpr bool race_build = true;

// Called by the emulated device's backend, streams and memory. device_access() throws Error; what a kernel does wrong
// is thrown by its run_grid().
void device_memory(const void* base, size_t bytes);  // once: all that the arena may ever give out

// This thread now runs what a stream was asked for: number `position` of it, counted from 1, of which clock[s]
// operations of stream s happen before or are it. Until the first one begins, one thing happens after the other.
// `what`, its name for messages, must live as long as the program.
void begin_operation(const char* what, uint32_t stream, uint32_t position, const std::vector<uint32_t>& clock);

void device_allocated(const void* p, size_t bytes);           // nothing is written there yet
void device_released(const void* p, size_t bytes);            // p as given to device_allocated
void device_access(const void* p, size_t bytes, bool write);  // by a copy, fill or gemm; the host's memory is ignored
inline void device_copy(const void* to, const void* from, size_t bytes) {
  device_access(from, bytes, false);
  device_access(to, bytes, true);
}

// Called by the block engine.
namespace race {
void grid_begins(Worker& w);
void grid_ends();
void block_begins();   // its shared memory is fresh
void block_barrier();  // all lanes have come
void warp_barrier(int warp);
}  // namespace race

// Called by race_hooks.cpp for each access of an instrumented file, with the address of the code behind it.
enum class Access : uint8_t { read, write, atomic_read, atomic_write, atomic_update };
void instrumented_access(const void* p, size_t bytes, Access access, const void* code);
bool kernel_runs();  // a lane has its turn on this thread

#else

constexpr bool race_build = false;
inline void device_memory(const void*, size_t) {}
inline void begin_operation(const char*, uint32_t, uint32_t, const std::vector<uint32_t>&) {}
inline void device_allocated(const void*, size_t) {}
inline void device_released(const void*, size_t) {}
inline void device_access(const void*, size_t, bool) {}
inline void device_copy(const void*, const void*, size_t) {}
namespace race {
inline void grid_begins(Worker&) {}
inline void grid_ends() {}
inline void block_begins() {}
inline void block_barrier() {}
inline void warp_barrier(int) {}
}  // namespace race

#endif

}  // namespace tapedeck::emulation
