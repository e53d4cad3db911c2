// map, each and rows: three ways to run a functor on a device; launch_blocks.h has a fourth. This file owns grids,
// guards, vector loops and threads, so that kernels never see them and no op asks which device it runs on.
//
//          cpu                       a device with lanes
//   each   a loop for the            a lane for each index
//   map    vectoriser, in threads    a lane for each pack of 16 bytes, so that memory moves at its full speed
//   rows   a thread for each row     a warp for each row up to 1,024 columns, else a block
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "engine/backend.h"
#include "engine/block.h"
#include "engine/device.h"
#include "engine/dtype.h"
#include "engine/emulation/emulated_device.h"
#include "engine/into.h"
#include "engine/kernel_name.h"
#include "engine/pack.h"
#include "engine/parallel.h"
#if defined(__CUDACC__)
#include "engine/cuda/launch_gpu.h"
#endif

namespace tapedeck {

#if !defined(__CUDACC__)
// Throws that this build has no CUDA. A build with CUDA does not have this function, and so is not linked until every
// file that launches kernels is compiled by nvcc: else one template would be two different functions of the same name,
// of which the linker takes either.
[[noreturn]] void launch_without_nvcc(const char* kernel);

template <class Kernel>
void launch_on_gpu(const char* name, const Kernel&, int64_t, int, size_t) {
  launch_without_nvcc(name);
}
#endif

// A kernel with its geometry, as a device with lanes runs it: one lane of one block.
template <class F>
struct EachKernel {
  F f;
  int64_t n;
  static constexpr int lanes = 256, max_lanes = lanes;
  HD void operator()(int64_t block, int lane, char*) const {
    const int64_t i = block * lanes + lane;
    if (i < n) f(i);
  }
};
// A row of 32 lanes is a warp's, and four of them are a block: a multiprocessor holds too few blocks (32 on most) to be
// busy with one warp in each. Warps without a row return before any meets another; a warp waits for none but its own.
template <class F>
struct RowsKernel {
  F f;
  int64_t count;
  int lanes;  // of a row
  static constexpr int max_lanes = 1024, warps = 4;
  int rows_of_block() const { return lanes == 32 ? warps : 1; }
  HD void operator()(int64_t block, int lane, char* scratch) const {
    const int64_t row = lanes == 32 ? block * warps + lane / 32 : block;
    if (row < count) f(Block{lanes == 32 ? lane % 32 : lane, lanes, scratch}, row);
  }
};

namespace detail {
template <class Kernel>
void run_lane(const void* kernel, int64_t block, int lane) {
  (*static_cast<const Kernel*>(kernel))(block, lane, emulation::shared_memory());
}
// On a device with lanes: queues kernel(block, lane, shared memory) for every lane of every block.
template <class F, class Kernel>
void launch(Device device, const Kernel& kernel, int64_t blocks, int lanes, size_t shared_bytes) {
  const char* const name = kernel_name<F>();
  if (device == Device::cuda) {
    launch_on_gpu(name, kernel, blocks, lanes, shared_bytes);
  } else {
    // A variable: nvcc loses the braces of a temporary launch inside a template.
    const emulation::Launch grid{name, blocks, lanes, shared_bytes, &run_lane<Kernel>, nullptr};
    emulation::ask_for_kernel(grid, kernel);
  }
  backend(device).launched(name);
}

template <class F>
int64_t work_of_row(const F& f) {  // elements; a functor whose row is more than `cols` long says so in work()
  if constexpr (requires { f.work(); })
    return f.work();
  else
    return f.cols;
}
template <class F>
void each_on_lanes(Device device, int64_t n, const F& functor) {
  constexpr int lanes = EachKernel<F>::lanes;
  if (n > 0) launch<F>(device, EachKernel<F>{functor, n}, (n + lanes - 1) / lanes, lanes, 0);
}
// Work of about this many elements repays waking a second thread (some µs).
inline constexpr int64_t grain_elements = 16384;
}  // namespace detail

// f(i) for every i < n, in no particular order.
template <class F>
void each(Device device, int64_t n, const F& functor) {
  if (device == Device::cpu) {
    parallel_ranges(n, detail::grain_elements, [&functor](int64_t begin, int64_t end) {
      const F f = functor;  // a copy of one's own: its pointers then stay in registers
      SIMD for (int64_t i = begin; i < end; ++i) f(i);
    });
  } else {
    detail::each_on_lanes(device, n, functor);
  }
}

namespace detail {
template <class F>
void rows_on_lanes(Device device, int64_t count, int lanes, size_t shared_bytes, const F& functor) {
  const RowsKernel<F> kernel{functor, count, lanes};
  const int64_t each = kernel.rows_of_block();
  if (count > 0) launch<F>(device, kernel, (count + each - 1) / each, static_cast<int>(each) * lanes, shared_bytes);
}
// A warp up to 1,024 columns, beyond that 256 lanes. A single row has the device to itself and takes as many as a block
// may have, as long as each has some columns.
inline int lanes_of_row(int64_t count, int64_t cols) {
  if (cols <= 1024) return 32;
  return count > 1 || cols <= 4096 ? 256 : 1024;
}
}  // namespace detail

// f(block, row) for every row; the workers of `block` share the row. F states `cols`, the length of a row, from which
// the number of lanes follows.
template <class F>
void rows(Device device, int64_t count, const F& functor) {
  if (device == Device::cpu) {
    const int64_t grain = detail::grain_elements / std::max<int64_t>(detail::work_of_row(functor), 1);
    parallel_ranges(count, grain, [&functor](int64_t begin, int64_t end) {
      const F f = functor;
      for (int64_t row = begin; row < end; ++row) f(Block{}, row);
    });
  } else {
    const int lanes = detail::lanes_of_row(count, functor.cols);
    detail::rows_on_lanes(device, count, lanes, lanes == 32 ? 0 : Block::reduce_bytes, functor);
  }
}

namespace detail {
template <bool add, class Out, class F, class... In>
struct Map {
  Out* out;
  F f;
  const void* in[sizeof...(In) > 0 ? sizeof...(In) : 1];
  HD void operator()(int64_t i) const { at(i, std::index_sequence_for<In...>{}); }
  template <size_t... k>
  HD void at(int64_t i, std::index_sequence<k...>) const {
    Into<Out>{out, add}(i, f(static_cast<Acc<In>>(static_cast<const In*>(in[k])[i])...));
  }
};

// The same where a lane has a whole pack. Neighbouring lanes have neighbouring packs, so a warp still reads one piece
// of memory. The elements behind the last whole pack get a lane each, so that there is no loop.
template <int width, bool add, class Out, class F, class... In>
struct MapPacks {
  Map<add, Out, F, In...> map;
  int64_t packs;
  HD void operator()(int64_t i) const {
    if (i < packs)
      load(i, std::index_sequence_for<In...>{});
    else
      map(packs * width + (i - packs));
  }
  template <size_t... k>
  HD void load(int64_t i, std::index_sequence<k...>) const {
    store(i, Pack<In, width>::at(static_cast<const In*>(map.in[k]), i)...);
  }
  HD void store(int64_t i, Pack<In, width>... in) const {  // copies: all is read before anything is written
    Pack<Out, width> out;
    if constexpr (add) out = Pack<Out, width>::at(map.out, i);
    UNROLL for (int j = 0; j < width; ++j) Into<Out>{out.value, add}(j, map.f(static_cast<Acc<In>>(in.value[j])...));
    Pack<Out, width>::at(map.out, i) = out;
  }
};

template <bool add, class Out, class F, class... In>
void run_map(Device device, int64_t n, Out* out, const F& f, const In*... in) {
  constexpr int width = pack_width<Out, In...>;
  const Map<add, Out, F, In...> map{out, f, {in...}};
  if (device != Device::cpu && packed<width>(out) && (... && packed<width>(in)))
    each_on_lanes(device, n / width + n % width, MapPacks<width, add, Out, F, In...>{map, n / width});
  else
    each(device, n, map);
}
}  // namespace detail

// out[i] = f(in[i]…) for every i < n. f computes in Acc, never sees an index, and may alias its output.
template <class F, class Out, class... In>
void map(Device device, int64_t n, Into<Out> out, const F& f, const In*... in) {
  // Two kernels: g++ does not vectorise a long loop that asks at each element whether to add.
  if (out.add)
    detail::run_map<true>(device, n, out.p, f, in...);
  else
    detail::run_map<false>(device, n, out.p, f, in...);
}

}  // namespace tapedeck
