// DeviceValue: one T in a device's memory, for numbers that kernels read and change from step to step. A captured step
// keeps its address, so what lies there may change between replays, where a kernel's argument may not.
#pragma once
#include <type_traits>

#include "engine/backend.h"
#include "engine/storage.h"

namespace tapedeck {

template <class T>
class DeviceValue {  // copies share the value
  static_assert(std::is_trivially_copyable_v<T>, "what goes to a device and back is copied byte by byte");

 public:
  explicit DeviceValue(Device device, const T& value = {}) : storage_(device, sizeof(T)) { write(value); }

  Device device() const { return storage_.device(); }
  T* ptr() const { return static_cast<T*>(storage_.begin()); }  // for kernels alone
  T read() const {                                              // waits for all kernels asked for so far
    T value;
    backend(device()).copy(&value, ptr(), sizeof(T));
    return value;
  }
  void write(const T& value) const { backend(device()).copy(ptr(), &value, sizeof(T)); }

 private:
  Storage storage_;
};

}  // namespace tapedeck
