// Pinned host memory: queued copies and kernels of the GPU reach it, at the address that the host uses.
#pragma once
#include <cstddef>
#include <map>
#include <mutex>

namespace tapedeck::cuda {

class Pinned {
 public:
  void* allocate(size_t bytes);
  void release(void* memory) noexcept;
  bool contains(const void* p, size_t bytes) const;

 private:
  mutable std::mutex mutex_;
  std::map<const char*, size_t> sizes_;  // by address
};

}  // namespace tapedeck::cuda
