#include "engine/cuda/cublaslt_problem.h"

#include <algorithm>
#include <vector>

#include "engine/check.h"

namespace tapedeck {
namespace {

cudaDataType_t cuda_type(DType type) {
  switch (type) {
    case DType::f64: return CUDA_R_64F;
    case DType::f16: return CUDA_R_16F;
    case DType::bf16: return CUDA_R_16BF;
    case DType::i32: return CUDA_R_32I;
    case DType::f32: break;
  }
  return CUDA_R_32F;
}

cublasLtEpilogue_t cuda_epilogue(const Gemm& g) {
  switch (g.epilogue) {
    case Epilogue::none: return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::bias: return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::bias_relu: return g.aux ? CUBLASLT_EPILOGUE_RELU_AUX_BIAS : CUBLASLT_EPILOGUE_RELU_BIAS;
    case Epilogue::bias_gelu: return g.aux ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_BIAS;
    case Epilogue::drelu: return g.bias_gradient ? CUBLASLT_EPILOGUE_DRELU_BGRAD : CUBLASLT_EPILOGUE_DRELU;
    case Epilogue::dgelu: return g.bias_gradient ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DGELU;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

// The largest power of two up to 256 that divides the address, and that of every product of the batch.
uint32_t alignment(const void* p, int64_t stride_bytes = 0) {
  const uintptr_t bits = reinterpret_cast<uintptr_t>(p) | static_cast<uintptr_t>(stride_bytes) | 256;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

struct Alignments {
  uint32_t a, b, c;
};
Alignments alignments(const Gemm& g) {
  const auto bytes = [&](int64_t stride, DType type) {
    return g.batch > 1 ? stride * static_cast<int64_t>(size_of(type)) : 0;
  };
  return {alignment(g.a, bytes(g.stride_a, g.dtype)), alignment(g.b, bytes(g.stride_b, g.dtype)),
          alignment(g.c, bytes(g.stride_c, g.type_of_c()))};
}

}  // namespace

bool CublasLtProblem::can_express(const Gemm& g) { return !g.aux || g.aux_is_mask() || g.n % 8 == 0; }

CublasLtProblem::CublasLtProblem(const CublasLtFunctions& functions, const Gemm& g, size_t workspace_bytes)
    : f_(functions), g_(g), workspace_bytes_(workspace_bytes), tf32_(g.dtype == DType::f32 && tf32()) {
  describe_operation();
  describe_epilogue();
  // As they lie in memory, transposed or not: the row-major R×C matrix is a column-major C×R one.
  a_ = layout(g.dtype, g.transpose_a ? g.m : g.k, g.transpose_a ? g.k : g.m, g.stride_a);
  b_ = layout(g.dtype, g.transpose_b ? g.k : g.n, g.transpose_b ? g.n : g.k, g.stride_b);
  c_ = layout(g.type_of_c(), g.n, g.m, g.stride_c);
  describe_preference();
}

CublasLtProblem::~CublasLtProblem() {
  if (preference_) f_.preference_destroy(preference_);
  for (cublasLtMatrixLayout_t layout : {a_, b_, c_})
    if (layout) f_.layout_destroy(layout);
  if (operation_) f_.operation_destroy(operation_);
}

template <class T>
void CublasLtProblem::set(cublasLtMatmulDescAttributes_t attribute, const T& value) const {
  check_cublaslt(f_, f_.operation_set(operation_, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute",
                 g_);
}

void CublasLtProblem::describe_operation() {
  // Alpha, beta and sums in f32 for 16-bit types too: another scale type than the sums' gives wrong numbers in silence.
  const cublasComputeType_t compute = g_.dtype == DType::f64 ? CUBLAS_COMPUTE_64F
                                      : tf32_                ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                             : CUBLAS_COMPUTE_32F;
  check_cublaslt(f_, f_.operation_create(&operation_, compute, g_.dtype == DType::f64 ? CUDA_R_64F : CUDA_R_32F),
                 "cublasLtMatmulDescCreate", g_);
  const int32_t first = g_.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, second = g_.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  set(CUBLASLT_MATMUL_DESC_TRANSA, first);
  set(CUBLASLT_MATMUL_DESC_TRANSB, second);
}

void CublasLtProblem::describe_epilogue() {
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(cuda_epilogue(g_)));
  if (g_.epilogue == Epilogue::none) return;
  if (const void* bias = g_.is_backward() ? g_.bias_gradient : g_.bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  if (!g_.aux) return;
  const int64_t row = g_.aux_is_mask() ? relu_mask_row_bytes(g_.n) * 8 : g_.n;  // in bits, in elements
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, g_.aux);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, row);
}

cublasLtMatrixLayout_t CublasLtProblem::layout(DType type, int64_t rows, int64_t cols, int64_t stride) const {
  cublasLtMatrixLayout_t layout = nullptr;
  check_cublaslt(
      f_, f_.layout_create(&layout, cuda_type(type), static_cast<uint64_t>(rows), static_cast<uint64_t>(cols), rows),
      "cublasLtMatrixLayoutCreate", g_);
  if (g_.batch > 1) {
    const int32_t batch = static_cast<int32_t>(g_.batch);
    check_cublaslt(f_, f_.layout_set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
                   "cublasLtMatrixLayoutSetAttribute", g_);
    check_cublaslt(f_, f_.layout_set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
                   "cublasLtMatrixLayoutSetAttribute", g_);
  }
  return layout;
}

void CublasLtProblem::describe_preference() {
  check_cublaslt(f_, f_.preference_create(&preference_), "cublasLtMatmulPreferenceCreate", g_);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check_cublaslt(f_, f_.preference_set(preference_, attribute, &value, sizeof value),
                   "cublasLtMatmulPreferenceSetAttribute", g_);
  };
  const auto [a, b, c] = alignments(g_);
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(workspace_bytes_));
  // Split sums are put together in f32 and in a fixed order, never in the 16 bits of C.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, b);  // its A is our B
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, a);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, c);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, c);
}

std::vector<cublasLtMatmulAlgo_t> CublasLtProblem::algorithms(cublasLtHandle_t handle, int most) const {
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(most));
  int count = 0;
  const cublasStatus_t status =
      f_.find_algorithms(handle, operation_, b_, a_, c_, c_, preference_, most, results.data(), &count);
  // What it says of a combination that it does not know; of a plain product that would be our mistake.
  const bool unknown =
      status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_INVALID_VALUE && g_.epilogue != Epilogue::none);
  if (unknown) return {};
  check_cublaslt(f_, status, "cublasLtMatmulAlgoGetHeuristic", g_);
  std::vector<cublasLtMatmulAlgo_t> found;
  for (int i = 0; i < count; ++i)
    if (results[static_cast<size_t>(i)].state == CUBLAS_STATUS_SUCCESS &&
        results[static_cast<size_t>(i)].workspaceSize <= workspace_bytes_)
      found.push_back(results[static_cast<size_t>(i)].algo);
  return found;
}

bool CublasLtProblem::accepts(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm) const {
  cublasLtMatmulHeuristicResult_t result{};
  return f_.check_algorithm(handle, operation_, b_, a_, c_, c_, &algorithm, &result) == CUBLAS_STATUS_SUCCESS &&
         result.workspaceSize <= workspace_bytes_;
}

cublasStatus_t CublasLtProblem::multiply(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm, void* out,
                                         void* workspace, cudaStream_t stream) const {
  const float alpha = static_cast<float>(g_.alpha), beta = static_cast<float>(g_.beta);
  const bool f64 = g_.dtype == DType::f64;
  return f_.multiply(handle, operation_, f64 ? static_cast<const void*>(&g_.alpha) : &alpha, g_.b, b_, g_.a, a_,
                     f64 ? static_cast<const void*>(&g_.beta) : &beta, g_.c, c_, out, c_, &algorithm, workspace,
                     workspace_bytes_, stream);
}

std::string CublasLtProblem::key() const {
  const auto [a, b, c] = alignments(g_);
  std::string key = text("{}x{}x{} {}{} {}>{} {}", g_.m, g_.n, g_.k, g_.transpose_a ? "T" : "N",
                         g_.transpose_b ? "T" : "N", name(g_.dtype), name(g_.type_of_c()), tf32_ ? "tf32" : "exact");
  key += text(" {}{}{}{}", name(g_.epilogue), g_.aux ? "+aux" : "", g_.bias_gradient ? "+sums" : "",
              g_.beta == 0 ? "" : " beta");
  if (g_.batch > 1) key += text(" batch {} {} {} {}", g_.batch, g_.stride_a, g_.stride_b, g_.stride_c);
  return key + text(" aligned {} {} {} {} {} workspace {}", a, b, c, alignment(g_.bias ? g_.bias : g_.bias_gradient),
                    alignment(g_.aux), workspace_bytes_);
}

}  // namespace tapedeck
