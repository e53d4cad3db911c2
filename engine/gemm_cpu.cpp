// gemm on the CPU, split among threads. Each thread computes a rectangle of C and applies the epilogue to it while it
// is in cache. The split depends on the shape and the thread count only.
#include <algorithm>
#include <cstring>

#include "engine/gelu.h"
#include "engine/gemm_by_f32.h"
#include "engine/gemm_devices.h"
#include "engine/gemm_epilogue.h"
#include "engine/gemm_part.h"
#include "engine/launch.h"

namespace tapedeck {
template <class T>
void multiply(const GemmPart<T>& p) {
#if defined(TAPEDECK_HAVE_ONEDNN)
  if constexpr (std::is_same_v<T, float>)
    if (p.k > 0) return gemm_onednn(p);
#endif
  gemm_eigen(p);
}
template void multiply(const GemmPart<float>&);
template void multiply(const GemmPart<double>&);

namespace {

void multiply(const GemmPart<float, Bfloat16>& p) {
#if defined(TAPEDECK_HAVE_ONEDNN)
  gemm_onednn_matmul(p);
#else
  CHECK(false, "gemm: this build has no products of bf16, got {}x{}x{}", p.m, p.n, p.k);
#endif
}

// relu and its mask, on part of a row that begins at a whole byte of the mask: bit j % 8 of byte j / 8 is column j.
template <class T>
void write_relu_mask(const T* z, int64_t cols, uint8_t* mask) {
  for (int64_t byte = 0; byte * 8 < cols; ++byte) {
    unsigned bits = 0;
    for (int64_t j = byte * 8; j < std::min(byte * 8 + 8, cols); ++j) bits |= unsigned(z[j] > 0) << (j % 8);
    mask[byte] = static_cast<uint8_t>(bits);
  }
}

template <class T>
void apply_relu_mask(T* c, int64_t cols, const uint8_t* mask) {
  for (int64_t j = 0; j < cols; ++j)
    if ((mask[j / 8] >> (j % 8) & 1) == 0) c[j] = 0;
}

template <class T>
void apply_epilogue(const Gemm& g, T* c, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  if (g.epilogue == Epilogue::none) return;
  const T* const bias = g.bias ? static_cast<const T*>(g.bias) + col : nullptr;
  for (int64_t i = row; i < row + rows; ++i) {
    T* const line = c + i * g.n + col;
    T* const z = g.aux ? static_cast<T*>(g.aux) + i * g.n + col : nullptr;
    uint8_t* const mask = g.aux ? static_cast<uint8_t*>(g.aux) + i * relu_mask_row_bytes(g.n) + col / 8 : nullptr;
    if (bias) {
      SIMD for (int64_t j = 0; j < cols; ++j) line[j] += bias[j];
    }
    switch (g.epilogue) {
      case Epilogue::none:
      case Epilogue::bias: break;
      case Epilogue::bias_relu:
        if (mask) write_relu_mask(line, cols, mask);
        SIMD for (int64_t j = 0; j < cols; ++j) line[j] = line[j] < T(0) ? T(0) : line[j];  // NaN stays NaN
        break;
      case Epilogue::bias_gelu:
        if (z) std::memcpy(z, line, static_cast<size_t>(cols) * sizeof(T));
        SIMD for (int64_t j = 0; j < cols; ++j) line[j] = gelu(line[j]);
        break;
      case Epilogue::drelu: apply_relu_mask(line, cols, mask); break;
      case Epilogue::dgelu: SIMD for (int64_t j = 0; j < cols; ++j) line[j] *= gelu_slope(z[j]); break;
    }
  }
}

// The rectangle rows × cols at (row, col) of product number `index` of the batch.
template <class T, class In>
void run_part(const Gemm& g, int64_t index, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  const In* a = static_cast<const In*>(g.a) + index * g.stride_a;
  const In* b = static_cast<const In*>(g.b) + index * g.stride_b;
  T* c = static_cast<T*>(g.c) + index * g.stride_c;
  const int64_t lda = g.transpose_a ? g.m : g.k, ldb = g.transpose_b ? g.k : g.n;
  multiply(GemmPart<T, In>{g.transpose_a, g.transpose_b, rows, cols, g.k, T(g.alpha),
                           a + row * (g.transpose_a ? 1 : lda), lda, b + col * (g.transpose_b ? ldb : 1), ldb,
                           T(g.beta), c + row * g.n + col, g.n});
  apply_epilogue(g, c, row, rows, col, cols);
}

template <class T, class In>
void run_products(const Gemm& g) {
  constexpr double grain_flops = 1e6;  // work for about 10 µs, which repays waking a thread
  const double flops = 2.0 * g.m * g.n * std::max<int64_t>(g.k, 1);
  const auto grain = [&](int64_t lines) {  // how many of the lines that a product consists of are that much
    return std::max<int64_t>(1, static_cast<int64_t>(grain_flops * lines / flops));
  };
  if (g.batch > 1)
    return parallel_ranges(g.batch, grain(1), [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) run_part<T, In>(g, index, 0, g.m, 0, g.n);
    });
  // Split the longer side of C: every thread has to pack the whole of the matrix that belongs to the other side.
  if (g.m >= g.n)
    return parallel_ranges(g.m, grain(g.m),
                           [&](int64_t begin, int64_t end) { run_part<T, In>(g, 0, begin, end - begin, 0, g.n); });
  // Columns go in eights where there is a mask: no two threads may write to one of its bytes.
  const int64_t unit = g.aux && g.aux_is_mask() ? 8 : 1, units = (g.n + unit - 1) / unit;
  parallel_ranges(units, grain(units), [&](int64_t begin, int64_t end) {
    run_part<T, In>(g, 0, 0, g.m, begin * unit, std::min(end * unit, g.n) - begin * unit);
  });
}

template <class T, class In = T>
void run_gemm(const Gemm& g) {
  run_products<T, In>(g);
  if (g.bias_gradient) sum_bias_gradient(Device::cpu, g);
}

}  // namespace

bool bf16_products_are_fast() {
#if defined(TAPEDECK_HAVE_ONEDNN)
  static const bool fast = bf16_is_native();
  return fast;
#else
  return false;
#endif
}

void gemm_on_cpu(const Gemm& g) {
  switch (g.dtype) {
    case DType::f64: return run_gemm<double>(g);
    case DType::f16: return gemm_by_f32<Half>(g, run_gemm<float>);
    case DType::bf16:
      if (g.k > 0 && bf16_products_are_fast()) return gemm_into_f32<Bfloat16>(g, run_gemm<float, Bfloat16>);
      return gemm_by_f32<Bfloat16>(g, run_gemm<float>);
    default: return run_gemm<float>(g);
  }
}

}  // namespace tapedeck
