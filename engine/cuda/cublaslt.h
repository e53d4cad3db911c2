// Products by cuBLASLt. For each new product its algorithms are timed once and the fastest is remembered, also between
// runs. What it needs of the CUDA runtime it is given, so that a test can run it without a GPU.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "engine/cuda/cublaslt_choices.h"
#include "engine/cuda/cublaslt_functions.h"
#include "engine/cuda/cublaslt_problem.h"

namespace tapedeck {

struct CublasLtHost {
  std::function<bool()> capturing;
  // Seconds that what `work` asks of the stream takes; waits for it.
  std::function<double(const std::function<void()>& work)> seconds;
  std::function<std::shared_ptr<void>(size_t bytes)> scratch;  // device memory
};

class CublasLt {
 public:
  // NVIDIA recommends 32 MiB from Hopper (compute capability 9) on, 4 MiB before; less hides the best algorithms.
  static constexpr size_t workspace_bytes(int compute_capability_major) {
    return compute_capability_major >= 9 ? size_t{32} << 20 : size_t{4} << 20;
  }

  // Throws Error where cuBLASLt does not start. Choices are kept in cache_folder()/gemm-GPU-VERSION.txt.
  CublasLt(const CublasLtFunctions& functions, CublasLtHost host, const std::string& gpu);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  struct Place {  // where a product runs
    cudaStream_t stream;
    void* workspace;  // of this stream alone
    size_t workspace_bytes;
  };
  // Asks the stream for g, a checked product that has elements. False where cuBLASLt has no algorithm, or k = 0:
  // nothing has happened then. Throws Error for any other failure. While the stream is captured nothing can be timed: a
  // product that was never met before takes the first algorithm that cuBLASLt proposes, and is timed when it next comes
  // outside of a capture.
  bool run(const Gemm& g, const Place& place);

 private:
  bool choose(const CublasLtProblem& problem, const Gemm& g, const Place& place, cublasLtMatmulAlgo_t& chosen);
  cublasLtMatmulAlgo_t fastest(const CublasLtProblem& problem, const Gemm& g, const Place& place,
                               const std::vector<cublasLtMatmulAlgo_t>& candidates) const;
  bool multiply(const Gemm& g, const Place& place);

  const CublasLtFunctions& f_;
  const CublasLtHost host_;
  cublasLtHandle_t handle_ = nullptr;
  std::unique_ptr<CublasLtChoices> choices_;
  std::set<std::string> accepted_;       // keys whose remembered algorithm cuBLASLt has looked at in this process
  std::set<std::string> impossible_;     // keys without any algorithm
  std::set<const void*> its_own_masks_;  // relu masks whose last writer was cuBLASLt
};

}  // namespace tapedeck
