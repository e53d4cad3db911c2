// gemm on the CPU, split among threads. Each thread computes a rectangle of C and applies the epilogue to it while it
// is in cache. The split depends on the shape and the thread count only.
#include <cstring>

#include "engine/gelu.h"
#include "engine/gemm_devices.h"
#include "engine/gemm_part.h"
#include "engine/launch.h"

namespace tapedeck {
namespace {

template <class T>
void multiply(const GemmPart<T>& p) {
#if defined(TAPEDECK_HAVE_ONEDNN)
  if constexpr (std::is_same_v<T, float>)
    if (p.k > 0) return gemm_onednn(p);
#endif
  gemm_eigen(p);
}

template <class T>
void apply_epilogue(const Gemm& g, T* c, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  if (g.epilogue == Epilogue::none) return;
  const T* bias = static_cast<const T*>(g.bias) + col;
  T* const aux = static_cast<T*>(g.aux);
  for (int64_t i = row; i < row + rows; ++i) {
    T* const line = c + i * g.n + col;
    T* const aux_line = aux ? aux + i * g.n + col : nullptr;
    SIMD for (int64_t j = 0; j < cols; ++j) line[j] += bias[j];
    if (aux_line) std::memcpy(aux_line, line, static_cast<size_t>(cols) * sizeof(T));
    if (g.epilogue == Epilogue::bias_relu) {
      SIMD for (int64_t j = 0; j < cols; ++j) line[j] = line[j] < T(0) ? T(0) : line[j];  // NaN stays NaN
    } else if (g.epilogue == Epilogue::bias_gelu) {
      SIMD for (int64_t j = 0; j < cols; ++j) line[j] = gelu(line[j]);
    }
  }
}

// The rectangle rows × cols at (row, col) of product number `index` of the batch.
template <class T>
void run_part(const Gemm& g, int64_t index, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  const T* a = static_cast<const T*>(g.a) + index * g.stride_a;
  const T* b = static_cast<const T*>(g.b) + index * g.stride_b;
  T* c = static_cast<T*>(g.c) + index * g.stride_c;
  const int64_t lda = g.transpose_a ? g.m : g.k, ldb = g.transpose_b ? g.k : g.n;
  multiply(GemmPart<T>{g.transpose_a, g.transpose_b, rows, cols, g.k, T(g.alpha), a + row * (g.transpose_a ? 1 : lda),
                       lda, b + col * (g.transpose_b ? ldb : 1), ldb, T(g.beta), c + row * g.n + col, g.n});
  apply_epilogue(g, c, row, rows, col, cols);
}

template <class T>
void run_gemm(const Gemm& g) {
  constexpr double grain_flops = 1e6;  // work for about 10 µs, which repays waking a thread
  const double flops = 2.0 * g.m * g.n * std::max<int64_t>(g.k, 1);
  const auto grain = [&](int64_t lines) {  // how many of the rows or columns that a product consists of are that much
    return std::max<int64_t>(1, static_cast<int64_t>(grain_flops * lines / flops));
  };
  if (g.batch > 1)
    return parallel_ranges(g.batch, grain(1), [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) run_part<T>(g, index, 0, g.m, 0, g.n);
    });
  // Split the longer side of C: every thread has to pack the whole of the matrix that belongs to the other side.
  if (g.m >= g.n)
    parallel_ranges(g.m, grain(g.m),
                    [&](int64_t begin, int64_t end) { run_part<T>(g, 0, begin, end - begin, 0, g.n); });
  else
    parallel_ranges(g.n, grain(g.n),
                    [&](int64_t begin, int64_t end) { run_part<T>(g, 0, 0, g.m, begin, end - begin); });
}

}  // namespace

void gemm_on_cpu(const Gemm& g) {
  if (g.dtype == DType::f64)
    run_gemm<double>(g);
  else
    run_gemm<float>(g);
}

}  // namespace tapedeck
