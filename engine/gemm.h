// Gemm: one contract for matrix products on every device.
//   C = alpha · op(A) · op(B) + beta · C, then the epilogue;   op(A) is m×k, op(B) is k×n, C is m×n, all row-major
// A is stored k×m when transpose_a, B n×k when transpose_b. With beta = 0 the old C is never read. `batch` products lie
// at the given strides (in elements). Sums run in f32, of f64 in f64, on `emulated` always in f64; a result is bitwise
// repeatable for a thread count.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/device.h"
#include "engine/dtype.h"

namespace tapedeck {

enum class Epilogue : uint8_t {
  none,
  bias,       // C[i][j] += bias[j]
  bias_relu,  // z = C + bias, C = max(z, 0); aux, if given, gets the mask of where z > 0
  bias_gelu,  // z = C + bias, C = gelu(z), tanh form; aux, if given, gets z
  drelu,      // backward through relu: C where the mask in aux is set, else 0
  dgelu,      // backward through gelu: C ∘ gelu'(z), z in aux
};
const char* name(Epilogue epilogue);

struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  DType dtype = DType::f32;                     // of A and B
  std::optional<DType> c_dtype = std::nullopt;  // of C, bias and gelu's aux: dtype, or f32 for 16-bit A and B
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  double alpha = 1, beta = 0;
  int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0;
  Epilogue epilogue = Epilogue::none;
  const void* bias = nullptr;  // n values, the same for every product of a batch
  void* aux = nullptr;         // gelu: m×n values. relu: relu_mask_bytes(m, n) bytes
  // drelu, if given: what bias_relu left in C. For a library that writes masks of a shape and type, but reads none.
  const void* output = nullptr;
  void* bias_gradient = nullptr;  // with drelu and dgelu, if given: Σ_i C[i][j] for each j, f64 for f64, else f32

  DType type_of_c() const { return c_dtype.value_or(dtype); }
  bool is_backward() const { return epilogue == Epilogue::drelu || epilogue == Epilogue::dgelu; }
  bool aux_is_mask() const { return epilogue == Epilogue::bias_relu || epilogue == Epilogue::drelu; }
};

// Size of relu's mask: a bit for each element, rows rounded up to 128 bits, as cuBLASLt wants it. Which bit is whose is
// the device's own affair (cuBLASLt does not say), so a mask is only good for drelu with the same m and n on the device
// that wrote it.
constexpr int64_t relu_mask_row_bytes(int64_t n) { return (n + 127) / 128 * 16; }
constexpr size_t relu_mask_bytes(int64_t m, int64_t n) { return static_cast<size_t>(m * relu_mask_row_bytes(n)); }

// All pointers lead to that device's memory. Throws Error, before anything is computed, for i32, for a C of another
// type than A's or f32, for negative sizes, for an epilogue without what it reads, for an aux or a bias gradient that
// the epilogue does not have, for beta != 0 with drelu and dgelu, and for a batch with an aux.
void gemm(Device device, const Gemm& g);

// Whether f32 products on a GPU may round A and B to TF32 (10 bits of mantissa, several times as fast). Off unless
// asked for; one choice for the whole process. Other devices have no TF32 and ignore it.
void set_tf32(bool allowed);
bool tf32();

}  // namespace tapedeck
