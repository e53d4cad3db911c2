// Finds the GPUs, or the reason why there is none to use. Nothing here ends the program: CUDA's runtime is linked in,
// and looks for the driver, libcuda.so.1, when it is first called.
#include "engine/gpu.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "engine/check.h"
#include "engine/cuda/probe.h"
#include "engine/device.h"

namespace tapedeck {
namespace {

std::string version_text(int version) {  // 13020 -> "13.2"
  return version > 0 ? text("{}.{}", version / 1000, version % 1000 / 10) : "";
}

int count_gpus() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaGetLastError();
  return status == cudaSuccess ? count : 0;
}

// Why no GPU at all can be used; "" when some can.
std::string why_no_gpu() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) return "no NVIDIA driver here: libcuda.so.1 was not found";
  dlclose(driver);
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (status == cudaSuccess && count > 0) return "";
  if (status == cudaSuccess || status == cudaErrorNoDevice) {
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return visible ? text("no GPU is visible: CUDA_VISIBLE_DEVICES is \"{}\"", visible)
                   : "the NVIDIA driver finds no GPU in this machine";
  }
  const CudaVersions versions = cuda_versions();
  if (status == cudaErrorInsufficientDriver)
    return text("the NVIDIA driver is too old: it knows CUDA {}, this program needs {}; update the driver",
                versions.driver_cuda.empty() ? "of no version" : versions.driver_cuda, versions.toolkit);
  return text("the NVIDIA driver does not answer: {} ({})", cudaGetErrorString(status), cudaGetErrorName(status));
}

std::string why_not(int index) {
  const int count = count_gpus();
  if (index >= count) return text("there is no cuda:{} here: the last GPU is cuda:{}", index, count - 1);
  cudaError_t status = cudaSetDevice(index);
  if (status == cudaSuccess) status = cuda::load_a_kernel();
  cudaGetLastError();
  if (status == cudaSuccess) return "";
  const Gpu gpu = gpus()[static_cast<size_t>(index)];
  if (status == cudaErrorNoKernelImageForDevice)
    return text("{} is sm_{}{}, but this program holds code for {}: build it with -DTAPEDECK_CUDA_ARCHITECTURES={}{}",
                gpu.name, gpu.major, gpu.minor, cuda::built_for(), gpu.major, gpu.minor);
  return text("{} cannot be used: {} ({})", gpu.name, cudaGetErrorString(status), cudaGetErrorName(status));
}

}  // namespace

bool built_with_cuda() { return true; }

std::string why_no_cuda() {
  static const std::string none = why_no_gpu();
  if (!none.empty()) return none;
  static std::map<int, std::string> of_gpu;
  const int index = chosen_gpu();
  if (!of_gpu.contains(index)) of_gpu[index] = why_not(index);
  return of_gpu[index];
}

std::vector<Gpu> gpus() {
  std::vector<Gpu> all;
  for (int i = 0; i < count_gpus(); ++i) {
    cudaDeviceProp found{};
    if (cudaGetDeviceProperties(&found, i) != cudaSuccess) break;
    all.push_back({found.name, found.major, found.minor, found.multiProcessorCount, found.totalGlobalMem});
  }
  cudaGetLastError();
  return all;
}

CudaVersions cuda_versions() {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);  // 0 where there is none
  cudaRuntimeGetVersion(&runtime);
  cudaGetLastError();
  CudaVersions versions{version_text(runtime), version_text(driver), ""};
  // NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul …
  std::ifstream in("/proc/driver/nvidia/version");
  std::string line;
  std::getline(in, line);
  std::istringstream words(line);
  for (std::string word; words >> word && versions.driver.empty();)
    if (word.find_first_not_of("0123456789.") == word.npos) versions.driver = word;
  return versions;
}

}  // namespace tapedeck
