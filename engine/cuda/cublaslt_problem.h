// A Gemm in cuBLASLt's words. cuBLASLt is column-major, and a row-major m×n matrix is a column-major n×m one in the
// same memory: so C = op(A) · op(B) is asked for as Cᵀ = op(B)ᵀ · op(A)ᵀ, with B as its first operand. Its rows are
// then our columns, and what it does by row (bias, bias gradient, the bits of relu's mask) falls on features as we want
// it. Types, attributes and their limits: cublasLt.h of CUDA 13.0.
#pragma once
#include <cublasLt.h>

#include <string>
#include <vector>

#include "engine/cuda/cublaslt_functions.h"

namespace tapedeck {

class CublasLtProblem {
 public:
  // Whether cuBLASLt has words for g at all: rows of gelu's aux must be a multiple of 8.
  static bool can_express(const Gemm& g);

  CublasLtProblem(const CublasLtFunctions& functions, const Gemm& g, size_t workspace_bytes);
  ~CublasLtProblem();
  CublasLtProblem(const CublasLtProblem&) = delete;
  CublasLtProblem& operator=(const CublasLtProblem&) = delete;

  // Up to `most` algorithms, the one that cuBLASLt expects to be fastest first. None: it cannot do this.
  std::vector<cublasLtMatmulAlgo_t> algorithms(cublasLtHandle_t handle, int most) const;
  bool accepts(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm) const;
  // alpha · … + beta · C into `out`, which may be C.
  cublasStatus_t multiply(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm, void* out, void* workspace,
                          cudaStream_t stream) const;

  std::string key() const;  // all that may change which algorithm is the fastest, or whether it may run

 private:
  void describe_operation();
  void describe_epilogue();
  void describe_preference();
  cublasLtMatrixLayout_t layout(DType type, int64_t rows, int64_t cols, int64_t stride) const;
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) const;

  const CublasLtFunctions& f_;
  const Gemm g_;
  const size_t workspace_bytes_;
  const bool tf32_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;  // of our A, B and C
  cublasLtMatmulPreference_t preference_ = nullptr;
};

}  // namespace tapedeck
