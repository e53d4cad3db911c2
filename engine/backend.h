// Backend: what differs between devices and is chosen at run time. Kernels (map, each, rows) are in launch.h.
#pragma once
#include <cstddef>

#include "engine/arena.h"
#include "engine/device.h"
#include "engine/gemm.h"

namespace tapedeck {

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Arena& arena() = 0;
  virtual void copy(void* to, const void* from, size_t bytes) = 0;  // either side may be the host's memory
  virtual void gemm(const Gemm& g) = 0;
  virtual void sync() = 0;                        // returns when everything asked so far has happened
  virtual void launched(const char* kernel) = 0;  // called after each kernel: where a device checks for faults
};

Backend& backend(Device device);

}  // namespace tapedeck
