// Storage: a counted slice of an arena. Copies share the bytes; the last one gives them back.
#pragma once
#include <atomic>
#include <memory>

#include "engine/device.h"

namespace tapedeck {

class Storage {
 public:
  Storage() = default;
  Storage(Device device, size_t bytes);  // fresh memory, contents undefined (NaN in a checked arena)

  Storage slice(size_t offset, size_t bytes) const;  // shares ownership
  void* begin() const { return begin_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  bool shared() const { return owner_.use_count() > 1; }
  explicit operator bool() const { return owner_ != nullptr; }

  // While something is kept for a backward pass its bytes must not change; see keep() in tape.h.
  void hold() const { ++owner_->holds; }
  void let_go() const { --owner_->holds; }
  bool held() const { return owner_ && owner_->holds > 0; }

 private:
  struct Owner {
    Owner(Device device, size_t bytes);
    ~Owner();
    Device device;
    void* address;
    std::atomic<int> holds{0};
  };
  std::shared_ptr<Owner> owner_;
  void* begin_ = nullptr;
  size_t bytes_ = 0;
  Device device_ = Device::cpu;
};

}  // namespace tapedeck
