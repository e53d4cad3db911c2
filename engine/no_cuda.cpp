// What a build without CUDA says of GPUs. A build with CUDA has engine/cuda in its place.
#include "engine/backends.h"
#include "engine/check.h"
#include "engine/gpu.h"
#include "engine/kernel_times.h"
#include "engine/launch.h"

namespace tapedeck {

bool built_with_cuda() { return false; }
std::string why_no_cuda() { return "this program was built without CUDA"; }
std::vector<Gpu> gpus() { return {}; }
CudaVersions cuda_versions() { return {}; }
Backend& cuda_backend() { throw Error("device cuda: " + why_no_cuda() + ": use --device cpu, or build where nvcc is"); }
std::unique_ptr<KernelRecorder> kernel_recorder(std::string& why_not) {
  why_not = why_no_cuda();
  return nullptr;
}
const OutsideTool* outside_tool() { return nullptr; }
void limit_gpu_memory(size_t) {}

[[noreturn]] void launch_without_nvcc(const char* kernel) {
  throw Error(text("{} on cuda: {}", kernel, why_no_cuda()));
}

}  // namespace tapedeck
