// map, each and rows: the three ways to run a functor on a device. This file owns grids, guards, vector loops and
// threads, so that kernels never see them and no op asks which device it runs on.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "engine/backend.h"
#include "engine/block.h"
#include "engine/device.h"
#include "engine/dtype.h"
#include "engine/emulation/kernel_name.h"
#include "engine/parallel.h"

namespace tapedeck {

// A kernel with its geometry, as a device with lanes runs it: one lane of one block.
template <class F>
struct EachKernel {
  F f;
  int64_t n;
  static constexpr int lanes = 256;
  HD void operator()(int64_t block, int lane) const {
    const int64_t i = block * lanes + lane;
    if (i < n) f(i);
  }
};
template <class F>
struct RowsKernel {
  F f;
  int lanes;
  HD void operator()(int64_t row, int lane, char* scratch) const { f(Block{lane, lanes, scratch}, row); }
};

#if defined(__CUDACC__)
// What nvcc compiles for the GPU: naming an instance makes it check the functor as device code.
template <class Kernel>
__global__ void each_on_gpu(const Kernel kernel) {
  kernel(static_cast<int64_t>(blockIdx.x), static_cast<int>(threadIdx.x));
}
template <class Kernel>
__global__ void rows_on_gpu(const Kernel kernel) {
  extern __shared__ char scratch[];
  kernel(static_cast<int64_t>(blockIdx.x), static_cast<int>(threadIdx.x), scratch);
}
#define COMPILE_FOR_GPU(kernel) [[maybe_unused]] const auto compiled_for_gpu = &kernel
#else
#define COMPILE_FOR_GPU(kernel) static_assert(true)
#endif

namespace detail {
template <class Kernel>
void each_lane(const void* kernel, int64_t block, int lane) {
  (*static_cast<const Kernel*>(kernel))(block, lane);
}
template <class Kernel>
void rows_lane(const void* kernel, int64_t block, int lane) {
  (*static_cast<const Kernel*>(kernel))(block, lane, emulation::shared_memory());
}
template <class F>
int64_t work_of_row(const F& f) {  // elements; a functor whose row is more than `cols` long says so in work()
  if constexpr (requires { f.work(); })
    return f.work();
  else
    return f.cols;
}
// Work of about this many elements repays waking a second thread (some µs).
inline constexpr int64_t grain_elements = 16384;
}  // namespace detail

// f(i) for every i < n, in no particular order.
template <class F>
void each(Device device, int64_t n, const F& functor) {
  if (n == 0) return;
  if (device == Device::cpu) {
    parallel_ranges(n, detail::grain_elements, [&functor](int64_t begin, int64_t end) {
      const F f = functor;  // a copy of one's own: its pointers then stay in registers
      SIMD for (int64_t i = begin; i < end; ++i) f(i);
    });
  } else {
    using Kernel = EachKernel<F>;
    COMPILE_FOR_GPU(each_on_gpu<Kernel>);
    const Kernel kernel{functor, n};
    const char* const name = emulation::kernel_name<F>();
    // A variable: nvcc loses the braces of a temporary launch inside a template.
    const emulation::Launch launch{
        name, (n + Kernel::lanes - 1) / Kernel::lanes, Kernel::lanes, 0, &detail::each_lane<Kernel>, &kernel};
    emulation::run_grid(launch);
    backend(device).launched(name);
  }
}

// f(block, row) for every row; the workers of `block` share the row. F states `cols`, the length of a row, from which
// the number of lanes follows: a warp up to 1,024 columns, then 256 lanes.
template <class F>
void rows(Device device, int64_t count, const F& functor) {
  if (count == 0) return;
  if (device == Device::cpu) {
    const int64_t grain = detail::grain_elements / std::max<int64_t>(detail::work_of_row(functor), 1);
    parallel_ranges(count, grain, [&functor](int64_t begin, int64_t end) {
      const F f = functor;
      for (int64_t row = begin; row < end; ++row) f(Block{}, row);
    });
  } else {
    using Kernel = RowsKernel<F>;
    COMPILE_FOR_GPU(rows_on_gpu<Kernel>);
    const Kernel kernel{functor, functor.cols <= 1024 ? 32 : 256};
    const char* const name = emulation::kernel_name<F>();
    const emulation::Launch launch{name, count, kernel.lanes, Block::reduce_bytes, &detail::rows_lane<Kernel>, &kernel};
    emulation::run_grid(launch);
    backend(device).launched(name);
  }
}

// Where a kernel's results go: writes to fresh memory, adds to what is there otherwise (a gradient's later writers).
template <class T>
struct Into {
  T* p;
  bool add = false;
  HD void operator()(int64_t i, Acc<T> value) const { p[i] = T(add ? Acc<T>(p[i]) + value : value); }
};

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
}  // namespace detail

// out[i] = f(in[i]…) for every i < n. f computes in Acc, never sees an index, and may alias its output.
template <class F, class Out, class... In>
void map(Device device, int64_t n, Into<Out> out, const F& f, const In*... in) {
  // Two kernels: g++ does not vectorise a long loop that asks at each element whether to add.
  if (out.add)
    each(device, n, detail::Map<true, Out, F, In...>{out.p, f, {in...}});
  else
    each(device, n, detail::Map<false, Out, F, In...>{out.p, f, {in...}});
}

// Columns that one Block sums side by side in column_sums: a warp's width, or, on the CPU, a strip for each thread.
inline int column_width(Device device, int64_t cols) {
  if (device != Device::cpu) return 32;
  const int64_t share = (cols / threads() + 63) / 64 * 64;  // whole cache lines
  return static_cast<int>(std::clamp<int64_t>(share, 64, Block::max_column_width));
}

}  // namespace tapedeck
