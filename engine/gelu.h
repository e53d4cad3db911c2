// gelu, tanh form: x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³)))  [Hendrycks & Gimpel 2016, arXiv:1606.08415]
// It is here and not in ops because gemm's epilogue applies it while the product is still in cache.
#pragma once
#include "engine/hd.h"
#include "engine/math.h"

namespace tapedeck {

constexpr double root_2_over_pi = 0.79788456080286535588;

template <class A>
HD A gelu(A x) {
  return A(0.5) * x * (A(1) + tanh(A(root_2_over_pi) * (x + A(0.044715) * x * x * x)));
}

// d gelu / dx = (1 + t)/2 + x/2 · (1 − t²) · k · (1 + 3 · 0.044715 · x²),  t the tanh above, k = √(2/π)
template <class A>
HD A gelu_slope(A x) {
  x = x < A(-16) ? A(-16) : x > A(16) ? A(16) : x;  // beyond, it is 0 or 1 and x³ would overflow; NaN passes
  const A k = A(root_2_over_pi);
  const A t = tanh(k * (x + A(0.044715) * x * x * x));
  return A(0.5) * (A(1) + t) + A(0.5) * x * (A(1) - t * t) * k * (A(1) + A(3 * 0.044715) * x * x);
}

}  // namespace tapedeck
