// gemm of plain loops that sums in double: slow, obvious, and the oracle of the fast ones.
#include "engine/emulation/race_detector.h"
#include "engine/gelu.h"
#include "engine/gemm_devices.h"

namespace tapedeck {
namespace {

// Relu's mask: row i begins at a whole byte, and bit j of it, from the lowest up, is column j.
struct MaskBit {
  uint8_t* byte;
  int bit;
  MaskBit(const Gemm& g, int64_t i, int64_t j)
      : byte(static_cast<uint8_t*>(g.aux) + i * relu_mask_row_bytes(g.n) + j / 8), bit(static_cast<int>(j % 8)) {}
  bool get() const { return (*byte >> bit & 1) != 0; }
  void set(bool on) const { *byte = static_cast<uint8_t>((*byte & ~(1u << bit)) | unsigned(on) << bit); }
};

// What becomes of alpha · Σ + beta · C at (i, j).
template <class TC>
double after(const Gemm& g, int64_t i, int64_t j, double value) {
  const auto z = [&]() -> TC& { return static_cast<TC*>(g.aux)[i * g.n + j]; };
  const auto biased = [&] { return value + static_cast<double>(static_cast<const TC*>(g.bias)[j]); };
  switch (g.epilogue) {
    case Epilogue::none: return value;
    case Epilogue::bias: return biased();
    case Epilogue::bias_relu:
      if (g.aux) MaskBit(g, i, j).set(biased() > 0);
      return biased() < 0 ? 0 : biased();  // NaN stays NaN
    case Epilogue::bias_gelu:
      if (g.aux) z() = static_cast<TC>(biased());
      return gelu(biased());
    case Epilogue::drelu: return MaskBit(g, i, j).get() ? value : 0;
    case Epilogue::dgelu: return value * gelu_slope(static_cast<double>(z()));
  }
  return value;
}

template <class T, class TC>
void multiply(const Gemm& g, const T* a, const T* b, TC* c) {
  for (int64_t j = 0; j < g.n; ++j) {
    double column = 0;
    for (int64_t i = 0; i < g.m; ++i) {
      double sum = 0;
      for (int64_t l = 0; l < g.k; ++l)
        sum += static_cast<double>(g.transpose_a ? a[l * g.m + i] : a[i * g.k + l]) *
               static_cast<double>(g.transpose_b ? b[j * g.k + l] : b[l * g.n + j]);
      TC& out = c[i * g.n + j];
      const double value = g.alpha * sum + (g.beta == 0 ? 0 : g.beta * static_cast<double>(out));
      out = static_cast<TC>(after<TC>(g, i, j, value));
      column += static_cast<double>(out);
    }
    if (g.bias_gradient) static_cast<Acc<TC>*>(g.bias_gradient)[j] = static_cast<Acc<TC>>(column);
  }
}

// Tells the race detector what the product reads and writes.
void note_accesses(const Gemm& g) {
  const auto note = [&](const void* p, int64_t count, int64_t stride, DType type, bool write) {
    if (p) emulation::device_access(p, static_cast<size_t>((g.batch - 1) * stride + count) * size_of(type), write);
  };
  note(g.a, g.m * g.k, g.stride_a, g.dtype, false);
  note(g.b, g.k * g.n, g.stride_b, g.dtype, false);
  note(g.bias, g.n, 0, g.type_of_c(), false);
  if (g.aux && g.aux_is_mask()) emulation::device_access(g.aux, relu_mask_bytes(g.m, g.n), !g.is_backward());
  if (!g.aux_is_mask()) note(g.aux, g.m * g.n, 0, g.type_of_c(), !g.is_backward());
  if (g.beta != 0) note(g.c, g.m * g.n, g.stride_c, g.type_of_c(), false);
  note(g.c, g.m * g.n, g.stride_c, g.type_of_c(), true);
  note(g.bias_gradient, g.n, 0, g.type_of_c() == DType::f64 ? DType::f64 : DType::f32, true);
}

}  // namespace

void gemm_emulated(const Gemm& g) {
  note_accesses(g);
  with_dtype(g.dtype, [&]<class T>() {
    with_dtype(g.type_of_c(), [&]<class TC>() {
      for (int64_t index = 0; index < g.batch; ++index)
        multiply(g, static_cast<const T*>(g.a) + index * g.stride_a, static_cast<const T*>(g.b) + index * g.stride_b,
                 static_cast<TC*>(g.c) + index * g.stride_c);
    });
  });
}

}  // namespace tapedeck
