#include "engine/cuda/probe.h"

#include <iterator>

#include "engine/cuda/launch_gpu.h"
#include "engine/hd.h"

namespace tapedeck::cuda {
namespace {

struct Nothing {
  static constexpr int max_lanes = 32;
  HD void operator()(int64_t, int, char*) const {}
};

}  // namespace

cudaError_t load_a_kernel() {
  cudaFuncAttributes attributes;
  const cudaError_t status = cudaFuncGetAttributes(&attributes, run_on_gpu<Nothing>);
  cudaGetLastError();
  return status;
}

std::string built_for() {
  const int architectures[] = {__CUDA_ARCH_LIST__};  // 800, 900
  std::string all;
  for (int i = 0; i < std::ssize(architectures); ++i) {
    const bool last = i + 1 == std::ssize(architectures);
    all += (i == 0 ? "sm_" : last ? " and sm_" : ", sm_") + std::to_string(architectures[i] / 10);
  }
  return all;
}

}  // namespace tapedeck::cuda
