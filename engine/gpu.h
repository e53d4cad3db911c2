// The GPUs of this machine, as CUDA shows them. A build without CUDA (engine/no_cuda.cpp) knows of none; the other one
// (engine/cuda/gpu.cpp) starts on every machine, also where there is no driver and no library of CUDA.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck {

bool built_with_cuda();

struct Gpu {
  std::string name;          // "NVIDIA H200"
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  size_t memory_bytes = 0;
};
std::vector<Gpu> gpus();  // empty where there is no driver or no GPU; why_no_cuda() in device.h says the reason

struct CudaVersions {
  std::string toolkit;      // "13.0", of this program
  std::string driver_cuda;  // "13.0", the newest that the driver knows
  std::string driver;       // "580.65.06"
};
CudaVersions cuda_versions();  // "" where there is none

class KernelRecorder;
// What tells of each kernel of Device::cuda; null where nothing can, for the reason in `why_not`.
std::unique_ptr<KernelRecorder> kernel_recorder(std::string& why_not);

struct OutsideTool;
// NVIDIA's tools, by NVTX, where one is attached to this process; else null.
const OutsideTool* outside_tool();

// Device::cuda is one GPU of this process: number 0, or what choose_gpu() said before it was first used.
void choose_gpu(int index);
int chosen_gpu();
// Most memory that Device::cuda takes; 0: nearly all that is free. To be said before it is first used, too.
void limit_gpu_memory(size_t bytes);

}  // namespace tapedeck
