// The block engine of the `emulated` device: runs a GPU kernel on the CPU, lane by lane.
//
// A kernel is a functor that runs once per lane of every block. A lane runs as an ordinary call until it has to wait
// (barrier, shuffle, vote); then it keeps its stack and another lane of the block goes on, so nothing runs in parallel
// and every run repeats exactly. Blocks run one after another. Several OS threads may each run grids at the same time.
//
// Everything a lane calls here must be met by its block or warp as on the GPU. What a GPU answers with a hang or a
// wrong number is an Error here, with kernel, block, lane and line; the engine can be used again at once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/site.h"

namespace tapedeck::emulation {

constexpr int warp_lanes = 32;

// Which goes first, of the lanes that can run and of the blocks: the lowest or the highest. A kernel that lacks a
// barrier usually comes out wrong in at least one of the two, so tests run both.
enum class Order { forward, reverse };

struct Options {
  Order order = Order::forward;
  size_t shared_limit = 227 * 1024;  // bytes of shared memory that a block may have (H100: 227 KiB)
};
Options& options();  // of the whole process: change it while no grid runs

struct Launch {
  const char* kernel;   // its name, for messages: kernel_name<Functor>()
  int64_t blocks;       // 1 … 2^31 − 1: as on the GPU, an empty grid is an error
  int lanes;            // per block: a multiple of 32, at most 1,024
  size_t shared_bytes;  // per block
  void (*lane_main)(const void* functor, int64_t block, int lane);
  const void* functor;
};

// Runs every block to its end. Throws Error: a bad shape, a block that cannot go on, lanes that meet wrongly, a write
// behind the shared memory, an exception thrown by the functor. The waiting lanes of a failed block are unwound, so
// that what they own is destroyed; blocks not begun do not run.
void run_grid(const Launch& launch);

// The rest is for kernels, called by a running lane; called from elsewhere they throw Error.

void barrier(Site site);             // waits for all lanes of the block, which must come to the same line
void warp_barrier(Site site);        // waits for the lanes of this warp that have not returned
uint32_t vote(bool yes, Site site);  // bit i: lane i of this warp said yes; needs all 32 lanes

char* shared_memory();  // this block's, aligned to 128 bytes; fresh in each block: all bytes 0xFF, NaN in any format
size_t shared_bytes();

enum class Shuffle { by_index, by_xor };
uint64_t shuffle_bits(Shuffle kind, uint64_t bits, int operand, Site site);

template <class T>
T shuffle_any(Shuffle kind, T value, int operand, Site site) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "a lane passes 4 or 8 bytes");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = shuffle_bits(kind, bits, operand, site);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

// The value of lane `source` (0 … 31) of this warp, or of lane `this lane ^ lane_mask`; needs all 32 lanes.
template <class T>
T shuffle(T value, int source, Site site) {
  return shuffle_any(Shuffle::by_index, value, source, site);
}
template <class T>
T shuffle_xor(T value, int lane_mask, Site site) {
  return shuffle_any(Shuffle::by_xor, value, lane_mask, site);
}

}  // namespace tapedeck::emulation
