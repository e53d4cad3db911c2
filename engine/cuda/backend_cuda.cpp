// Device::cuda: one slab of the GPU's memory, two streams, and the other files of this folder behind Backend.
#include "engine/backends.h"

#include <algorithm>
#include <cstring>

#include "engine/check.h"
#include "engine/cuda/error.h"
#include "engine/cuda/gemm_cuda.h"
#include "engine/cuda/graph.h"
#include "engine/cuda/pinned.h"
#include "engine/cuda/staging.h"
#include "engine/cuda/streams.h"
#include "engine/gpu.h"

namespace tapedeck {
namespace {

using cuda::check;
using cuda::stream;
using cuda::StreamEvent;

size_t& wanted_bytes() {
  static size_t bytes = 0;
  return bytes;
}

struct Slab {
  void* begin = nullptr;
  size_t bytes = 0;
};

// Nearly all that is free, or what was asked for. What is left is for CUDA itself: kernels' code, their local memory,
// and cuBLAS.
Slab take_memory() {
  cuda::bind_thread();
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  const size_t for_cuda = size_t{512} << 20;
  Slab slab;
  slab.bytes = wanted_bytes() ? wanted_bytes() : free > 2 * for_cuda ? free - for_cuda : free / 2;
  slab.bytes = (slab.bytes + Arena::alignment - 1) / Arena::alignment * Arena::alignment;
  constexpr double gib = 1 << 30;
  if (slab.bytes > free)
    throw OutOfMemory(
        text("device cuda: {:.1f} GiB asked, but {:.1f} of {:.1f} GiB of the GPU are free: see nvidia-smi "
             "for who has the rest, or lower --memory-limit",
             static_cast<double>(slab.bytes) / gib, static_cast<double>(free) / gib, static_cast<double>(total) / gib));
  check(cudaMalloc(&slab.begin, slab.bytes), "cudaMalloc");
  return slab;
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const Slab& slab) : arena_(text("cuda:{}", chosen_gpu()), slab.begin, slab.bytes) {}

  Arena& arena() override { return arena_; }

  void gemm(const Gemm& g) override { gemm_.run(g); }

  void launched(const char* kernel) override {
    check(cudaPeekAtLastError(), kernel);
#if !defined(NDEBUG)  // a fault is then found at the kernel that made it
    if (!capturing()) check(cudaStreamSynchronize(stream(Queue::compute)), kernel);
#endif
  }

  void sync() override {
    if (capturing()) refuse_while_capturing("sync");
    cuda::bind_thread();
    check(cudaStreamSynchronize(stream(Queue::compute)), "what the GPU was asked for");
    check(cudaStreamSynchronize(stream(Queue::transfer)), "a copy");
  }

  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes == 0) return;
    const bool to_gpu = arena_.contains(to), from_gpu = arena_.contains(from);
    if (!(to_gpu && from_gpu) && capturing()) refuse_while_capturing("copy");
    cuda::bind_thread();
    if (to_gpu && from_gpu)
      check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream(Queue::compute)), "copy");
    else if (to_gpu)
      staging_.to_gpu(to, from, bytes);
    else if (from_gpu)
      staging_.to_host(to, from, bytes);
    else
      std::memmove(to, from, bytes);
  }

  void* pin(size_t bytes) override { return pinned_.allocate(bytes); }
  void unpin(void* memory) noexcept override { pinned_.release(memory); }

  void copy_later(Queue queue, void* to, const void* from, size_t bytes) override {
    if (bytes == 0) return;
    for (const void* side : {static_cast<const void*>(to), from})
      CHECK(arena_.contains(side) || pinned_.contains(side, bytes),
            "copy_later: {} bytes of host memory that is not pinned, so that the copy could not run later: take them "
            "from pin()",
            bytes);
    cuda::bind_thread();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream(queue)), "copy_later");
  }

  std::unique_ptr<Event> event() override { return std::make_unique<StreamEvent>(); }
  void record(Event& event, Queue queue) override {
    cuda::bind_thread();
    static_cast<StreamEvent&>(event).record(queue);
  }
  void wait(Queue queue, const Event& event) override {
    cuda::bind_thread();
    static_cast<const StreamEvent&>(event).delay(queue);
  }
  void wait(const Event& event) override {
    cuda::bind_thread();
    static_cast<const StreamEvent&>(event).wait();
  }
  double seconds(const Event& from, const Event& to) override {
    return static_cast<const StreamEvent&>(to).seconds_since(static_cast<const StreamEvent&>(from));
  }

  bool can_capture() const override { return true; }
  bool capturing() const override { return cuda::capturing(); }
  std::unique_ptr<Graph> capture(const std::function<void()>& work) override { return cuda::capture(work); }

 private:
  Arena arena_;
  cuda::GemmCuda gemm_{arena_};
  cuda::Staging staging_;
  cuda::Pinned pinned_;
};

CudaBackend* make_backend() {
  if (const std::string why = why_no_cuda(); !why.empty()) throw Error("device cuda: " + why);
  return new CudaBackend(take_memory());
}

}  // namespace

void limit_gpu_memory(size_t bytes) { wanted_bytes() = bytes; }

// Never destroyed: tensors in static variables of other files may outlive any order of destruction.
Backend& cuda_backend() {
  static Backend& backend = *make_backend();
  return backend;
}

}  // namespace tapedeck
