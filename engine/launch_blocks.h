// blocks: the fourth way to run a functor, on devices with lanes alone: f(block, index) by a whole block of F::lanes
// lanes with F::shared_bytes of shared memory, for kernels that keep tiles there. The compiler learns how many lanes
// there are, and so gives each the registers that a block of that size may have.
#pragma once
#include "engine/launch.h"

namespace tapedeck {

template <class F>
struct BlocksKernel {
  F f;
  static constexpr int max_lanes = F::lanes;
  HD void operator()(int64_t block, int lane, char* scratch) const { f(Block{lane, F::lanes, scratch}, block); }
};

template <class F>
void blocks(Device device, int64_t count, const F& functor) {
  if (count > 0) detail::launch<F>(device, BlocksKernel<F>{functor}, count, F::lanes, F::shared_bytes);
}

}  // namespace tapedeck
