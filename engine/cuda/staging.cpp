#include "engine/cuda/staging.h"

#include <algorithm>
#include <cstring>

#include "engine/cuda/error.h"

namespace tapedeck::cuda {

Staging::Staging() {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, 2 * half_bytes, cudaHostAllocPortable), "cudaHostAlloc");
  for (int i : {0, 1}) halves_[i].memory = static_cast<char*>(memory) + i * half_bytes;
}

Staging::Half& Staging::next_free() {
  Half& half = halves_[next_];
  next_ = 1 - next_;
  half.used.wait();
  return half;
}

void Staging::to_gpu(void* to, const void* from, size_t bytes) {
  const std::lock_guard lock(mutex_);
  for (size_t done = 0; done < bytes; done += half_bytes) {
    const size_t part = std::min(half_bytes, bytes - done);
    Half& half = next_free();
    std::memcpy(half.memory, static_cast<const char*>(from) + done, part);
    check(cudaMemcpyAsync(static_cast<char*>(to) + done, half.memory, part, cudaMemcpyHostToDevice,
                          stream(Queue::compute)),
          "a copy to the GPU");
    half.used.record(Queue::compute);
  }
}

void Staging::to_host(void* to, const void* from, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const Half* full = nullptr;  // the half that holds the part at `emptied`
  size_t emptied = 0;
  const auto empty = [&] {
    const size_t part = std::min(half_bytes, bytes - emptied);
    full->used.wait();
    std::memcpy(static_cast<char*>(to) + emptied, full->memory, part);
    emptied += part;
  };
  for (size_t done = 0; done < bytes; done += half_bytes) {
    Half& half = next_free();
    check(cudaMemcpyAsync(half.memory, static_cast<const char*>(from) + done, std::min(half_bytes, bytes - done),
                          cudaMemcpyDeviceToHost, stream(Queue::compute)),
          "a copy from the GPU");
    half.used.record(Queue::compute);
    if (full) empty();
    full = &half;
  }
  if (full) empty();
}

}  // namespace tapedeck::cuda
