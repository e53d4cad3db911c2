// Copies between ordinary host memory and the GPU. The GPU reads and writes only memory that is pinned, so what is
// copied goes by way of two pinned halves: while the GPU works on one, the processor fills or empties the other.
#pragma once
#include <cstddef>
#include <mutex>

#include "engine/cuda/streams.h"

namespace tapedeck::cuda {

class Staging {
 public:
  Staging();
  // On the compute queue. The source has been read when this returns.
  void to_gpu(void* to, const void* from, size_t bytes);
  // Has happened when this returns.
  void to_host(void* to, const void* from, size_t bytes);

 private:
  static constexpr size_t half_bytes = 4 << 20;
  struct Half {
    char* memory = nullptr;
    StreamEvent used;  // the GPU has done with it
  };
  Half& next_free();

  std::mutex mutex_;
  Half halves_[2];
  int next_ = 0;
};

}  // namespace tapedeck::cuda
