#include "engine/cuda/gemm_cuda.h"

#include <cuda_runtime_api.h>

#include "engine/cuda/cublaslt.h"
#include "engine/cuda/error.h"
#include "engine/cuda/graph.h"
#include "engine/cuda/streams.h"
#include "engine/gemm_epilogue.h"
#include "engine/gpu.h"

namespace tapedeck::cuda {
namespace {

Gpu this_gpu() { return gpus().at(static_cast<size_t>(chosen_gpu())); }

double seconds_of(const std::function<void()>& work) {
  StreamEvent begin, end;
  begin.record(Queue::compute);
  work();
  end.record(Queue::compute);
  end.wait();
  return end.seconds_since(begin);
}

}  // namespace

GemmCuda::GemmCuda(Arena& arena) : arena_(arena), workspace_bytes_(CublasLt::workspace_bytes(this_gpu().major)) {
  bind_thread();
  check(cudaMalloc(&workspace_, workspace_bytes_), "cudaMalloc of cuBLASLt's workspace");
}

GemmCuda::~GemmCuda() { cudaFree(workspace_); }

CublasLt& GemmCuda::library() {
  if (!library_)
    library_ = std::make_unique<CublasLt>(
        cublaslt_functions(),
        CublasLtHost{capturing, seconds_of,
                     [this](size_t bytes) {
                       return std::shared_ptr<void>(arena_.allocate(bytes), [this](void* p) { arena_.release(p); });
                     }},
        this_gpu().name);
  return *library_;
}

void GemmCuda::run(const Gemm& g) {
  gemm_by_library(Device::cuda, g, [this](const Gemm& part) {
    return library().run(part, {stream(Queue::compute), workspace_, workspace_bytes_});
  });
}

}  // namespace tapedeck::cuda
