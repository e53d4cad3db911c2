// Block: the workers that share one row. A kernel is written once over each, sum, max and column_sums; here is what
// these mean on the three kinds of hardware:
//   cpu       one thread does the whole row (lanes = 1); loops are marked for the vectoriser
//   emulated  lanes are fibers that meet at the block engine's barriers and shuffles (engine/emulation)
//   GPU       lanes are threads; 32 of them are a warp and exchange registers, more share memory
// A row of 32 lanes is one warp. It needs no shared memory, and must not wait for the block, where other warps have
// rows of their own. Longer rows take a whole block of several warps.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "engine/emulation/block_engine.h"
#include "engine/hd.h"
#include "engine/site.h"

// For the loops of the CPU. nvcc hands the pragmas on to the C++ compiler, and takes no notice of them itself.
#define SIMD_PRAGMA(text) _Pragma(#text)
#define SIMD SIMD_PRAGMA(omp simd)
#define SIMD_SUM(total) SIMD_PRAGMA(omp simd reduction(+ : total))
#define SIMD_MAX(top) SIMD_PRAGMA(omp simd reduction(max : top))

namespace tapedeck {

struct Block {
  int lane = 0, lanes = 1;
  char* scratch = nullptr;  // shared memory of the row's block; a row of one warp has none

  // Whether this is a CPU thread. A GPU never is, and its compiler leaves that branch out.
  HD bool alone() const { return !ON_GPU && lanes == 1; }

  // f(j) for every j < n, in no particular order.
  template <class F>
  HD void each(int64_t n, const F& f) const {
    if (alone()) {
      SIMD for (int64_t j = 0; j < n; ++j) f(j);
    } else {
      for (int64_t j = lane; j < n; j += lanes) f(j);
    }
  }

  // Σ f(j) over j < n, the same value for every lane. The order of addition is fixed for a number of lanes.
  template <class F>
  HD auto sum(int64_t n, const F& f, Site site = Site::here()) const {
    decltype(f(0)) total = 0;
    if (alone()) {
      SIMD_SUM(total) for (int64_t j = 0; j < n; ++j) total += f(j);
      return total;
    }
    for (int64_t j = lane; j < n; j += lanes) total += f(j);
    return all(
        total, [](auto a, auto b) { return a + b; }, site);
  }

  // max f(j) over j < n, -inf when n = 0. Of NaN it says nothing: it may come through or be passed over.
  template <class F>
  HD auto max(int64_t n, const F& f, Site site = Site::here()) const {
    using A = decltype(f(0));
    static_assert(std::numeric_limits<A>::has_infinity, "max starts from -inf");
    A top = A(-INFINITY);
    if (alone()) {
      SIMD_MAX(top) for (int64_t j = 0; j < n; ++j) {
        const A value = f(j);
        top = top > value ? top : value;
      }
      return top;
    }
    for (int64_t j = lane; j < n; j += lanes) {
      const A value = f(j);
      top = top > value ? top : value;
    }
    return all(
        top, [](A a, A b) { return a > b ? a : b; }, site);
  }

  // For `width` columns side by side: store(j, Σ value(i, j) over i < rows). A CPU thread walks the rows in order, so
  // that memory is read as it lies. On a GPU `width` is at most 32: lane j of every warp sums a part of column j, warp
  // w of W every W-th row from row w on, and the first warp adds the parts in the order of the warps. Needs
  // column_sum_bytes() of scratch unless the row is one warp.
  template <class A, class Value, class Store>
  HD void column_sums(int64_t rows, int width, const Value& value, const Store& store, Site site = Site::here()) const {
    if (alone()) {
      A total[max_column_width] = {};
      for (int64_t i = 0; i < rows; ++i) {
        SIMD for (int j = 0; j < width; ++j) total[j] += value(i, j);
      }
      SIMD for (int j = 0; j < width; ++j) store(j, total[j]);
    } else {
      const int j = lane % 32, warp = lane / 32, warps = lanes / 32;
      A total = 0;
      if (j < width)
        for (int64_t i = warp; i < rows; i += warps) total += value(i, j);
      if (warps > 1) {
        A* const parts = reinterpret_cast<A*>(scratch);  // [warps, 32]
        parts[lane] = total;
        sync(site);
        if (warp == 0)
          for (int w = 1; w < warps; ++w) total += parts[w * 32 + j];
        sync(site);  // the next reduction writes there again
      }
      if (warp == 0 && j < width) store(j, total);
    }
  }
  template <class A>
  static constexpr size_t column_sum_bytes(int lanes) {
    return lanes > 32 ? lanes * sizeof(A) : 0;
  }
  static constexpr int max_column_width = 256;

  // Every lane of the row has come here, and what it wrote is seen by the others.
  HD void sync(Site site = Site::here()) const {
    if (alone()) return;
#if ON_GPU
    if (lanes == 32)
      __syncwarp();
    else
      __syncthreads();
#else
    if (lanes == 32)
      emulation::warp_barrier(site);
    else
      emulation::barrier(site);
#endif
    (void)site;
  }

  // The value of the lane whose number in the warp differs from mine in the bits of mask.
  template <class A>
  HD static A exchange(A value, int mask, Site site) {
#if ON_GPU
    return __shfl_xor_sync(0xffffffffu, value, mask);
#else
    return emulation::shuffle_xor(value, mask, site);
#endif
  }

  // Bytes of scratch that sum and max need: one value a warp.
  static constexpr size_t reduce_bytes = 32 * sizeof(double);

 private:
  template <class A, class Join>
  HD A all(A value, const Join& join, Site site) const {
    for (int mask = 16; mask > 0; mask /= 2) value = join(value, exchange(value, mask, site));
    if (lanes == 32) return value;
    A* const of_warp = reinterpret_cast<A*>(scratch);
    if (lane % 32 == 0) of_warp[lane / 32] = value;
    sync(site);
    A total = of_warp[0];
    for (int warp = 1; warp < lanes / 32; ++warp) total = join(total, of_warp[warp]);
    sync(site);  // the next reduction writes there again
    return total;
  }
};

}  // namespace tapedeck
