// 16-bit storage types. Ops load them as float, compute in float and store them rounded; they do no arithmetic
// themselves.
//
//   Half(x), Bfloat16(x)      float, double or integer -> 16 bits, rounded once, to nearest, ties to even; NaN stays
//   NaN,
//                             and quiet. An integer beyond 2^53 is rounded to double first
//   float(h)                  exact; also implicit, so that Acc<T>(x) and double(x) work
//   T::from_bits(u)           the value whose pattern is u (IEEE 754 binary16; the upper half of a binary32)
//
// Half: 1 sign, 5 exponent, 10 mantissa bits; largest 65504, smallest normal 2^-14, smallest subnormal 2^-24.
// Bfloat16: 1, 8, 7: float's range in 7 mantissa bits. Beyond the largest value both round to infinity.
// CPU code is integer selects (and one exact float sum for subnormals), so that loops vectorise; the scalar F16C
// intrinsics would stop g++ from doing that.
#pragma once
#include <cstdint>
#include <type_traits>

#include "engine/hd.h"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace tapedeck {
namespace half_detail {

HD uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
HD float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// A number as a float that rounds to 16 bits as the number itself would. Rounding double -> float -> 16 bits to nearest
// would round twice; so here toward zero, with the last bit set when anything was lost ("round to odd").
template <class T>
HD float narrow(T number) {
  if constexpr (std::is_same_v<T, float>) {
    return number;
  } else {
    const double x = static_cast<double>(number);
    const float nearest = static_cast<float>(x);
    const double back = nearest;
    const bool away = x < 0 ? back < x : back > x;
    return float_of((bits_of(nearest) - uint32_t(away)) | uint32_t(back != x));
  }
}

HD uint16_t half_bits(float x) {
#if ON_GPU
  return __half_as_ushort(__float2half_rn(x));
#else
  const uint32_t bits = bits_of(x), size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
  // Rebias the exponent by 127 - 15 = 112; adding half a unit less one, plus the last kept bit, rounds ties to even.
  const uint32_t normal = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
  // 0.5 + x has the unit 2^-24, that of Half's subnormals: the sum does the rounding.
  const uint32_t subnormal = bits_of(float_of(size) + 0.5f) - bits_of(0.5f);
  const uint32_t nan = 0x7e00 | (size >> 13 & 0x3ff);
  uint32_t result = size < bits_of(0x1p-14f) ? subnormal : normal;
  result = size >= bits_of(0x1p16f) ? 0x7c00 : result;  // from 65520 on, `normal` has already carried into infinity
  result = size > 0x7f800000 ? nan : result;
  return static_cast<uint16_t>(sign | result);
#endif
}

HD float half_value(uint16_t half) {
#if ON_GPU
  return __half2float(__ushort_as_half(half));
#else
  // Compared in their place in a float, since g++ does not vectorise 16-bit comparisons that select 32-bit values.
  const uint32_t size = uint32_t(half & 0x7fff) << 13, sign = uint32_t(half & 0x8000) << 16;
  const uint32_t least_normal = 0x0400u << 13, infinity = 0x7c00u << 13;
  const uint32_t normal = size + (112u << 23);
  // A subnormal m 2^-24 is (2^-14 + m 2^-24) - 2^-14, and both of those are normal floats.
  const uint32_t subnormal = bits_of(float_of(size + (113u << 23)) - 0x1p-14f);
  uint32_t result = size < least_normal ? subnormal : normal;
  result = size >= infinity ? size | 0x7f800000 : result;
  result = size > infinity ? result | 0x400000 : result;  // a quiet NaN
  return float_of(sign | result);
#endif
}

HD uint16_t bfloat16_bits(float x) {
#if ON_GPU
  return __bfloat16_as_ushort(__float2bfloat16_rn(x));
#else
  const uint32_t bits = bits_of(x);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const uint32_t nan = bits >> 16 | 0x40;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
#endif
}

}  // namespace half_detail

struct Half {
  uint16_t bits;

  Half() = default;
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  explicit HD Half(T x) : bits(half_detail::half_bits(half_detail::narrow(x))) {}
  HD operator float() const { return half_detail::half_value(bits); }

  static HD Half from_bits(uint16_t pattern) {
    Half h;
    h.bits = pattern;
    return h;
  }
};

struct Bfloat16 {
  uint16_t bits;

  Bfloat16() = default;
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  explicit HD Bfloat16(T x) : bits(half_detail::bfloat16_bits(half_detail::narrow(x))) {}
  HD operator float() const { return half_detail::float_of(uint32_t(bits) << 16); }

  static HD Bfloat16 from_bits(uint16_t pattern) {
    Bfloat16 b;
    b.bits = pattern;
    return b;
  }
};

static_assert(sizeof(Half) == 2 && sizeof(Bfloat16) == 2);
static_assert(std::is_trivial_v<Half> && std::is_trivial_v<Bfloat16>);

}  // namespace tapedeck
