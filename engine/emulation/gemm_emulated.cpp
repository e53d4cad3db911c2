// gemm of plain loops that sums in double: slow, obvious, and the oracle of the fast ones.
#include "engine/emulation/race_detector.h"
#include "engine/gelu.h"
#include "engine/gemm_devices.h"

namespace tapedeck {
namespace {

template <class T>
void multiply(const Gemm& g, const T* a, const T* b, T* c) {
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < g.k; ++l)
        sum += static_cast<double>(g.transpose_a ? a[l * g.m + i] : a[i * g.k + l]) *
               static_cast<double>(g.transpose_b ? b[j * g.k + l] : b[l * g.n + j]);
      T& out = c[i * g.n + j];
      double value = g.alpha * sum + (g.beta == 0 ? 0 : g.beta * static_cast<double>(out));
      if (g.epilogue != Epilogue::none) value += static_cast<double>(static_cast<const T*>(g.bias)[j]);
      if (g.aux) static_cast<T*>(g.aux)[i * g.n + j] = static_cast<T>(value);
      if (g.epilogue == Epilogue::bias_relu && value < 0) value = 0;
      if (g.epilogue == Epilogue::bias_gelu) value = gelu(value);
      out = static_cast<T>(value);
    }
}

template <class T>
void run_gemm(const Gemm& g) {
  for (int64_t index = 0; index < g.batch; ++index)
    multiply(g, static_cast<const T*>(g.a) + index * g.stride_a, static_cast<const T*>(g.b) + index * g.stride_b,
             static_cast<T*>(g.c) + index * g.stride_c);
}

// Tells the race detector what the product reads and writes.
void note_accesses(const Gemm& g) {
  const auto note = [&](const void* p, int64_t count, int64_t stride, bool write) {
    emulation::device_access(p, static_cast<size_t>((g.batch - 1) * stride + count) * size_of(g.dtype), write);
  };
  note(g.a, g.m * g.k, g.stride_a, false);
  note(g.b, g.k * g.n, g.stride_b, false);
  if (g.bias) note(g.bias, g.n, 0, false);
  if (g.aux) note(g.aux, g.m * g.n, 0, true);
  note(g.c, g.m * g.n, g.stride_c, true);
}

}  // namespace

void gemm_emulated(const Gemm& g) {
  note_accesses(g);
  if (g.dtype == DType::f64)
    run_gemm<double>(g);
  else
    run_gemm<float>(g);
}

}  // namespace tapedeck
