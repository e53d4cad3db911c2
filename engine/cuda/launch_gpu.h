// launch_on_gpu: a kernel in the shape that launch.h gives it, kernel(block, lane, scratch), on the compute stream.
// Only nvcc reads this file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "engine/check.h"
#include "engine/cuda/error.h"
#include "engine/cuda/streams.h"

namespace tapedeck {
namespace cuda {

// Kernel::max_lanes: of a block. A multiprocessor has 65,536 registers, so up to 256 lanes may use 255 each, 1,024 only
// 64, which `make cuda-kernels` shows to be enough. One block at a time may have them all: asked for nothing, the
// compiler takes 32 where 1,024 lanes may be, and spills the rest.
template <class Kernel>
__global__ void __launch_bounds__(Kernel::max_lanes, 1) run_on_gpu(const Kernel kernel) {
  extern __shared__ __align__(16) char scratch[];
  kernel(static_cast<int64_t>(blockIdx.x), static_cast<int>(threadIdx.x), scratch);
}

// A block gets up to 48 KiB of shared memory as it is, and more only if the kernel has been told so once.
template <class Kernel>
void allow_shared_memory(const char* name, size_t bytes) {
  static size_t allowed = 48 << 10;
  if (bytes <= allowed) return;
  check(cudaFuncSetAttribute(run_on_gpu<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        name);
  allowed = bytes;
}

}  // namespace cuda

// Asks the GPU for kernel(block, lane, shared memory) for every lane of every block. Throws Error naming the kernel and
// the layer at work when the launch is refused.
template <class Kernel>
void launch_on_gpu(const char* name, const Kernel& kernel, int64_t blocks, int lanes, size_t shared_bytes) {
  static_assert(std::is_trivially_copyable_v<Kernel>, "a kernel goes to the GPU as its bytes");
  CHECK(blocks <= std::numeric_limits<int>::max(), "{}: {} blocks, but a GPU runs at most 2^31 - 1 in one launch", name,
        blocks);
  CHECK(lanes <= Kernel::max_lanes, "{}: {} lanes, but it is compiled for up to {}", name, lanes, +Kernel::max_lanes);
  cuda::allow_shared_memory<Kernel>(name, shared_bytes);
  cuda::run_on_gpu<Kernel>
      <<<static_cast<unsigned>(blocks), static_cast<unsigned>(lanes), shared_bytes, cuda::stream(Queue::compute)>>>(
          kernel);
  cuda::check(cudaGetLastError(), name);
}

}  // namespace tapedeck
