// gemm of 16-bit matrices on the CPU: their f32 copies are multiplied, and what comes out is rounded once. It costs the
// memory of the copies and two passes, and has no formula of its own.
#pragma once
#include "engine/gemm.h"
#include "engine/launch.h"
#include "engine/tensor.h"

namespace tapedeck {
namespace detail {
template <class T>
class F32Copy {  // of 16-bit numbers; empty for a null pointer
 public:
  F32Copy(const void* original, int64_t count) : original_(static_cast<const T*>(original)), count_(count) {
    if (original) floats_ = Tensor::empty({count}, DType::f32, Device::cpu);
  }
  float* data() const { return original_ ? floats_.ptr<float>() : nullptr; }
  F32Copy& read() {
    if (original_) map(Device::cpu, count_, Into<float>{data()}, SameValue(), original_);
    return *this;
  }
  void write_back(void* to) const {
    if (to) map(Device::cpu, count_, Into<T>{static_cast<T*>(to)}, SameValue(), data());
  }

 private:
  const T* original_;
  int64_t count_;
  Tensor floats_;
};
}  // namespace detail

// g of 16-bit type T by `f32_gemm`, which takes factors of that type and everything else in f32.
template <class T, class F>
void gemm_into_f32(const Gemm& g, const F& f32_gemm) {
  using Copy = detail::F32Copy<T>;
  for (int64_t index = 0; index < g.batch; ++index) {
    Gemm wide = g;
    wide.dtype = DType::f32, wide.c_dtype.reset(), wide.batch = 1;
    wide.a = static_cast<const T*>(g.a) + index * g.stride_a;
    wide.b = static_cast<const T*>(g.b) + index * g.stride_b;
    if (g.type_of_c() == DType::f32) {
      wide.c = static_cast<float*>(g.c) + index * g.stride_c;
      f32_gemm(wide);
      continue;
    }
    T* const half_c = static_cast<T*>(g.c) + index * g.stride_c;
    Copy c(half_c, g.m * g.n), bias(g.bias, g.n), z(g.aux_is_mask() ? nullptr : g.aux, g.m * g.n);
    wide.c = (g.beta == 0 ? c : c.read()).data();
    wide.bias = bias.read().data();
    if (!g.aux_is_mask()) wide.aux = (g.epilogue == Epilogue::dgelu ? z.read() : z).data();
    f32_gemm(wide);
    c.write_back(half_c);
    if (g.epilogue == Epilogue::bias_gelu) z.write_back(g.aux);
  }
}

// The same by a gemm that takes everything in f32.
template <class T>
void gemm_by_f32(const Gemm& g, void (*f32_gemm)(const Gemm&)) {
  gemm_into_f32<T>(g, [f32_gemm](const Gemm& half) {
    detail::F32Copy<T> a(half.a, half.m * half.k), b(half.b, half.k * half.n);
    Gemm wide = half;
    wide.a = a.read().data(), wide.b = b.read().data();
    f32_gemm(wide);
  });
}

}  // namespace tapedeck
