#include "engine/cuda/pinned.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "engine/cuda/error.h"
#include "engine/cuda/streams.h"

namespace tapedeck::cuda {
namespace {

// While a stream is captured, its thread may not allocate, unless it says that it knows what it does. Pinning touches
// nothing that is captured.
class CaptureAllows {
 public:
  CaptureAllows() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~CaptureAllows() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  CaptureAllows(const CaptureAllows&) = delete;
  CaptureAllows& operator=(const CaptureAllows&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace

void* Pinned::allocate(size_t bytes) {
  bind_thread();
  const CaptureAllows it;
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, std::max<size_t>(bytes, 1), cudaHostAllocPortable | cudaHostAllocMapped),
        "cudaHostAlloc");
  const std::lock_guard lock(mutex_);
  sizes_[static_cast<const char*>(memory)] = bytes;
  return memory;
}

void Pinned::release(void* memory) noexcept {
  const CaptureAllows it;
  {
    const std::lock_guard lock(mutex_);
    sizes_.erase(static_cast<const char*>(memory));
  }
  cudaFreeHost(memory);  // fails only where the GPU has failed before, or the process ends
}

bool Pinned::contains(const void* p, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto* const at = static_cast<const char*>(p);
  const auto after = sizes_.upper_bound(at);
  if (after == sizes_.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  return at + bytes <= begin + size;
}

}  // namespace tapedeck::cuda
