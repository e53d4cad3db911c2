// The gemm of Device::cuda: products by cuBLASLt, and by kernels of ours what it has no epilogue for.
#pragma once
#include <cstddef>
#include <memory>

#include "engine/arena.h"
#include "engine/gemm.h"

namespace tapedeck {
class CublasLt;
}

namespace tapedeck::cuda {

class GemmCuda {
 public:
  // Takes cuBLASLt's workspace at once, since nothing can be allocated while a step is captured. cuBLASLt itself is
  // loaded at the first product.
  explicit GemmCuda(Arena& arena);
  ~GemmCuda();
  GemmCuda(const GemmCuda&) = delete;
  GemmCuda& operator=(const GemmCuda&) = delete;

  void run(const Gemm& g);

 private:
  CublasLt& library();

  Arena& arena_;  // for what timing an algorithm needs, for so long
  std::unique_ptr<CublasLt> library_;
  size_t workspace_bytes_;
  void* workspace_ = nullptr;
};

}  // namespace tapedeck::cuda
