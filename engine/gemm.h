// Gemm: one contract for matrix products on every device.
//   C = alpha · op(A) · op(B) + beta · C, then the epilogue;   op(A) is m×k, op(B) is k×n, C is m×n, all row-major
// A is stored k×m when transpose_a, B n×k when transpose_b. With beta = 0 the old C is never read. `batch` products lie
// at the given strides (in elements). Sums run in Acc<T>, on `emulated` in f64; a result is bitwise repeatable for a
// thread count.
#pragma once
#include <cstdint>

#include "engine/device.h"
#include "engine/dtype.h"

namespace tapedeck {

enum class Epilogue : uint8_t {
  none,
  bias,       // C[i][j] += bias[j]
  bias_relu,  // max(C + bias, 0)
  bias_gelu,  // gelu(C + bias), tanh form
};

struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  DType dtype = DType::f32;  // of A, B, C, bias and aux
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  double alpha = 1, beta = 0;
  int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0;
  Epilogue epilogue = Epilogue::none;
  const void* bias = nullptr;
  void* aux = nullptr;  // m×n, gets C + bias when given; for batch = 1 with an epilogue
};

// All pointers lead to that device's memory. Throws Error for another dtype than f32 and f64, a negative size, an
// epilogue without a bias, and an aux where there is no place for it.
void gemm(Device device, const Gemm& g);

}  // namespace tapedeck
