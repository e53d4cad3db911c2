// One thread's part of a matrix product on the CPU: a rectangle of C with leading dimensions, in T = float or double,
// of factors of the same type or in Bfloat16.
//   C = alpha · op(A) · op(B) + beta · C,  row-major, beta = 0 never reads C
#pragma once
#include <cstdint>

namespace tapedeck {

template <class T, class In = T>
struct GemmPart {
  bool transpose_a, transpose_b;
  int64_t m, n, k;
  T alpha;
  const In* a;
  int64_t lda;
  const In* b;
  int64_t ldb;
  T beta;
  T* c;
  int64_t ldc;
};

// The product on the calling thread alone: of f32 by oneDNN where there is one, else by Eigen.
template <class T>
void multiply(const GemmPart<T>& part);  // gemm_cpu.cpp

template <class T>
void gemm_eigen(const GemmPart<T>& part);       // gemm_eigen.cpp
void gemm_onednn(const GemmPart<float>& part);  // gemm_onednn.cpp, in builds with oneDNN

void onednn_on_this_thread();  // the calling one: oneDNN starts no others from it

// gemm_onednn_matmul.cpp, in builds with oneDNN. Of Bfloat16 only where oneDNN uses the processor's instructions for
// it.
bool bf16_is_native();
template <class In>
void gemm_onednn_matmul(const GemmPart<float, In>& part);

}  // namespace tapedeck
