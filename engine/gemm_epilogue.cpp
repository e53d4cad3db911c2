#include "engine/gemm_epilogue.h"

#include "engine/column_sums.h"
#include "engine/gelu.h"
#include "engine/launch.h"

namespace tapedeck {
namespace {

// Each functor takes the index of an element of C, row-major; those of relu's mask that of one of its bytes, which
// stands for 8 columns. Here bit number j of a row, from the lowest of its first byte on, is column j.
template <class T>
struct Scaled {
  T* c;
  Acc<T> beta;
  HD void operator()(int64_t i) const { c[i] = beta == 0 ? T(0) : T(beta * Acc<T>(c[i])); }
};

template <class T>
struct AddBias {
  T* c;
  const T* bias;
  int64_t cols;
  HD void operator()(int64_t i) const { c[i] = T(Acc<T>(c[i]) + Acc<T>(bias[i % cols])); }
};

template <class T>
struct BiasRelu {
  T* c;
  const T* bias;
  int64_t cols;
  HD void operator()(int64_t i) const {
    const Acc<T> z = Acc<T>(c[i]) + Acc<T>(bias[i % cols]);
    c[i] = T(z < 0 ? Acc<T>(0) : z);  // NaN stays NaN
  }
};

template <class T>
struct BiasReluMask {
  T* c;
  const T* bias;
  uint8_t* mask;
  int64_t cols, row_bytes;
  HD void operator()(int64_t byte) const {
    const int64_t row = byte / row_bytes, first = byte % row_bytes * 8;
    unsigned bits = 0;
    for (int64_t j = first; j < first + 8 && j < cols; ++j) {
      const Acc<T> z = Acc<T>(c[row * cols + j]) + Acc<T>(bias[j]);
      bits |= unsigned(z > 0) << (j - first);
      c[row * cols + j] = T(z < 0 ? Acc<T>(0) : z);
    }
    mask[byte] = static_cast<uint8_t>(bits);
  }
};

template <class T>
struct BiasGelu {
  T* c;
  const T* bias;
  T* aux;  // may be null
  int64_t cols;
  HD void operator()(int64_t i) const {
    const Acc<T> z = Acc<T>(c[i]) + Acc<T>(bias[i % cols]);
    if (aux) aux[i] = T(z);
    c[i] = T(gelu(z));
  }
};

template <class T>
struct TimesReluSlope {
  T* c;
  const T* y;           // null: the mask says it
  const uint8_t* mask;  // not read where there is y
  int64_t cols, row_bytes;
  HD void operator()(int64_t i) const {
    const int64_t j = i % cols;
    const bool on = y ? Acc<T>(y[i]) > 0 : (mask[i / cols * row_bytes + j / 8] >> (j % 8) & 1) != 0;
    if (!on) c[i] = T(0);
  }
};

template <class T>
struct TimesGeluSlope {
  T* c;
  const T* z;
  HD void operator()(int64_t i) const { c[i] = T(Acc<T>(c[i]) * gelu_slope(Acc<T>(z[i]))); }
};

template <class T>
void apply_epilogue(Device device, const Gemm& g, T* c) {
  const int64_t count = g.m * g.n, row_bytes = relu_mask_row_bytes(g.n);
  const T* const bias = static_cast<const T*>(g.bias);
  uint8_t* const mask = static_cast<uint8_t*>(g.aux);
  T* const z = static_cast<T*>(g.aux);
  switch (g.epilogue) {
    case Epilogue::none: return;
    case Epilogue::bias: return each(device, count, AddBias<T>{c, bias, g.n});
    case Epilogue::bias_relu:
      if (!mask) return each(device, count, BiasRelu<T>{c, bias, g.n});
      return each(device, g.m * row_bytes, BiasReluMask<T>{c, bias, mask, g.n, row_bytes});
    case Epilogue::bias_gelu: return each(device, count, BiasGelu<T>{c, bias, z, g.n});
    case Epilogue::drelu:
      return each(device, count, TimesReluSlope<T>{c, static_cast<const T*>(g.output), mask, g.n, row_bytes});
    case Epilogue::dgelu: return each(device, count, TimesGeluSlope<T>{c, z});
  }
}

// What a library cannot do, or not in one: a sum of nothing, or a product without epilogue, and then the epilogue.
void gemm_in_steps(Device device, const Gemm& g, const std::function<bool(const Gemm&)>& library) {
  Gemm plain = g;
  plain.epilogue = Epilogue::none;
  plain.bias = nullptr, plain.aux = nullptr, plain.output = nullptr, plain.bias_gradient = nullptr;
  if (g.k > 0)
    CHECK(library(plain), "gemm: the library has no algorithm for a plain product of {}x{}x{} in {}", g.m, g.n, g.k,
          name(g.dtype));
  with_dtype(g.type_of_c(), [&]<class T>() {
    for (int64_t index = 0; index < g.batch; ++index) {
      T* const c = static_cast<T*>(g.c) + index * g.stride_c;
      if (g.k == 0) each(device, g.m * g.n, Scaled<T>{c, static_cast<Acc<T>>(g.beta)});
      apply_epilogue(device, g, c);
    }
  });
}

}  // namespace

void gemm_by_library(Device device, const Gemm& g, const std::function<bool(const Gemm&)>& library) {
  Gemm fused = g;
  if (size_of(g.type_of_c()) == 2) fused.bias_gradient = nullptr;  // else it would store the sums in 16 bits
  bool done = library(fused);
  if (done && fused.bias_gradient) return;
  if (!done && fused.bias_gradient) {
    fused.bias_gradient = nullptr;
    done = library(fused);
  }
  if (!done) gemm_in_steps(device, g, library);
  if (g.bias_gradient) sum_bias_gradient(device, g);
}

void sum_bias_gradient(Device device, const Gemm& g) {
  with_dtype(g.type_of_c(), [&]<class T>() {
    sum_columns(device, g.m, g.n, Into<Acc<T>>{static_cast<Acc<T>*>(g.bias_gradient)},
                Element<T>{static_cast<const T*>(g.c), g.n});
  });
}

}  // namespace tapedeck
