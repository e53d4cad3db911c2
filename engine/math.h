// exp, log, tanh, erf, sigmoid, rsqrt, for float and for double. Ops live in this namespace and call them plainly.
//
//   function     how the float one is computed on a CPU                                     largest error there
//   exp(x)       2^n e^r, x = n ln 2 + r, |r| <= ln 2 / 2                                    1.1 ulp
//   log(x)       e ln 2 + log(1 + f), x = 2^e (1 + f), 1 + f in [sqrt 1/2, sqrt 2)           0.9 ulp
//   tanh(x)      t / (t + 2), t = e^2|x| - 1                                                 2.7 ulp
//   erf(x)       x + x P(x^2) below 0.9, else 1 - exp(-Q(|x|))                               1.3 ulp
//   sigmoid(x)   1 / (1 + e^-x)                                                              2.5 ulp
//   rsqrt(x)     1 / sqrt x                                                                  1.5 ulp
//
// The float ones are selects and arithmetic only, no branch and no table, so that g++ and clang vectorise a loop over
// them. NaN in, NaN out. Subnormal arguments and results are honoured (exp(-100) is 3.8e-44; log(1e-45) is -103.28),
// but sigmoid is 0 below -88.7228, where e^-x overflows. exp overflows to infinity, log(0) is -infinity, log of a
// negative number is NaN. The double ones, for gradient checks, are the standard library's. A GPU calls CUDA's own
// functions. A file that nvcc compiles must not say `using namespace tapedeck` at file scope: CUDA's headers call exp
// unqualified.
//
// The polynomials are minimax fits of the relative error of the whole result (Remez exchange in 40 digits, then rounded
// to float). Each comment gives what was fitted, where, and the error that the fit alone leaves.
#pragma once
#include <cmath>
#include <cstdint>

#include "engine/hd.h"

namespace tapedeck {
namespace math_detail {

HD uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
HD float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

constexpr float log2_e = 1.44269504f;
// ln 2 in two parts; the first has 9 bits, so that its product with a whole number below 2^15 is exact.
constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;

struct Reduced {
  float n, expm1_r;  // x = n ln 2 + r, n whole, |r| <= ln 2 / 2
  uint32_t n_bits;   // n as an integer, two's complement
};

// The common start of exp and tanh. e^r - 1 = r + r^2 P(r), |r| <= 0.3468, error 2^-26.2.
HD Reduced reduce(float x) {
  const float shift = 0x1.8p23f;  // adding it rounds to a whole number, which then stands in the low bits
  const float shifted = x * log2_e + shift;
  const float n = shifted - shift;
  const float r = (x - n * ln2_high) - n * ln2_low;
  float p = 1.38825178e-3f;
  p = p * r + 8.36654752e-3f;
  p = p * r + 4.16672006e-2f;
  p = p * r + 1.66665435e-1f;
  p = p * r + 4.9999997e-1f;
  return {n, r + r * r * p, bits_of(shifted) - bits_of(shift)};
}

HD float two_to(uint32_t n) { return float_of((n + 127) << 23); }  // 2^n for n in [-126, 127]

}  // namespace math_detail

HD float exp(float x) {
#if ON_GPU
  return ::expf(x);
#else
  using namespace math_detail;
  x = x < -104.0f ? -104.0f : x;  // both bounds lie past the last x whose exp is neither 0 nor infinite
  x = x > 89.0f ? 89.0f : x;
  const Reduced y = reduce(x);
  // 2^n by two factors: n goes from -150 to 128, and only the last product may round into the subnormals.
  const uint32_t half_n = uint32_t(int32_t(y.n_bits) >> 1);
  return (1 + y.expm1_r) * two_to(half_n) * two_to(y.n_bits - half_n);
#endif
}

// log(1 + f) = f - f^2/2 + f^3 P(f), sqrt 1/2 <= 1 + f < sqrt 2, error 2^-27.4.
HD float log(float x) {
#if ON_GPU
  return ::logf(x);
#else
  using namespace math_detail;
  const bool subnormal = x < 0x1p-126f;
  const uint32_t sqrt_half = 0x3f3504f3;
  const uint32_t bits = bits_of(subnormal ? x * 0x1p23f : x) - sqrt_half;
  const float e = float((int32_t(bits) >> 23) - (subnormal ? 23 : 0));
  const float f = float_of((bits & 0x7fffff) + sqrt_half) - 1;
  float p = -7.63455629e-2f;
  p = p * f + 1.27616063e-1f;
  p = p * f - 1.31601721e-1f;
  p = p * f + 1.42017543e-1f;
  p = p * f - 1.66233584e-1f;
  p = p * f + 2.00012267e-1f;
  p = p * f - 2.50008196e-1f;
  p = p * f + 3.33333313e-1f;
  const float square = f * f;
  const float tail = (square * f * p + e * ln2_low) - 0.5f * square;
  float y = e * ln2_high + (f + tail);
  y = x == 0 ? -HUGE_VALF : y;
  y = x < 0 ? NAN : y;
  return x < HUGE_VALF ? y : x;  // infinity and NaN
#endif
}

HD float tanh(float x) {
#if ON_GPU
  return ::tanhf(x);
#else
  using namespace math_detail;
  float size = std::fabs(x);
  size = size > 10.0f ? 10.0f : size;  // tanh is 1 in float from 9.02 on
  const Reduced y = reduce(2 * size);
  const float scale = two_to(y.n_bits);
  const float t = scale * y.expm1_r + (scale - 1);  // no cancellation: for small x the scale is 1
  return std::copysign(t / (t + 2), x);
#endif
}

// Below 0.9: erf(x) = x + x P(x^2), error 2^-26.3. From 0.9 to 4: Q(a) = -log(erfc(a)), error 2^-29.1 of erf.
HD float erf(float x) {
#if ON_GPU
  return ::erff(x);
#else
  float size = std::fabs(x);
  const float square = size * size;
  float p = -6.09036128e-4f;
  p = p * square + 5.01196319e-3f;
  p = p * square - 2.67789084e-2f;
  p = p * square + 1.12821408e-1f;
  p = p * square - 3.76125246e-1f;
  p = p * square + 1.28379151e-1f;
  const float small = size + size * p;
  const float a = size > 4.0f ? 4.0f : size;  // erf is 1 in float from 3.92 on
  float q = -1.9821951e-4f;
  q = q * a + 3.06548877e-3f;
  q = q * a - 2.23152079e-2f;
  q = q * a + 1.04113668e-1f;
  q = q * a + 6.36976123e-1f;
  q = q * a + 1.12779725f;
  q = q * a + 1.66449259e-4f;
  const float large = 1 - exp(-q);
  return std::copysign(size < 0.9f ? small : large, x);
#endif
}

HD float sigmoid(float x) { return 1 / (1 + exp(-x)); }

HD float rsqrt(float x) {
#if ON_GPU
  return ::rsqrtf(x);
#else
  return 1 / std::sqrt(x);
#endif
}

HD double exp(double x) { return std::exp(x); }
HD double log(double x) { return std::log(x); }
HD double tanh(double x) { return std::tanh(x); }
HD double erf(double x) { return std::erf(x); }
HD double sigmoid(double x) { return 1 / (1 + exp(-x)); }
HD double rsqrt(double x) { return 1 / std::sqrt(x); }

}  // namespace tapedeck
