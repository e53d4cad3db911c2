// PinnedBuffer: host memory that a device's queues copy from and to by themselves, and that its kernels can write.
#pragma once
#include <utility>

#include "engine/backend.h"

namespace tapedeck {

class PinnedBuffer {
 public:
  PinnedBuffer(Device device, size_t bytes) : device_(device), memory_(backend(device).pin(bytes)) {}
  // Waits for the device, which may still use it. While a step is captured nobody can wait: let no buffer die there that
  // a queue has been given before.
  ~PinnedBuffer() {
    if (!memory_) return;
    backend(device_).sync_quietly();
    backend(device_).unpin(memory_);
  }
  PinnedBuffer(PinnedBuffer&& other) noexcept
      : device_(other.device_), memory_(std::exchange(other.memory_, nullptr)) {}
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;

  void* begin() const { return memory_; }

 private:
  Device device_;
  void* memory_;
};

}  // namespace tapedeck
