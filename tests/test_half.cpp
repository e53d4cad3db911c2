// Half and Bfloat16 against a plain reference: all 65,536 patterns, every tie and its neighbours, and a stride of
// floats.
#include "engine/half.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#if defined(__F16C__)
#include <immintrin.h>
#endif

using namespace tapedeck;

namespace {

// A binary format by its two widths, decoded and rounded the slow way.
struct Format {
  int exponent_bits, mantissa_bits;

  int infinity() const { return ((1 << exponent_bits) - 1) << mantissa_bits; }
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  // The value of a pattern without sign; infinity's pattern gives the next power of two, which rounding needs.
  double value(int pattern) const {
    const int exponent = pattern >> mantissa_bits, mantissa = pattern & ((1 << mantissa_bits) - 1);
    if (exponent == 0) return std::ldexp(mantissa, 1 - bias() - mantissa_bits);
    return std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias() - mantissa_bits);
  }
  // Nearest by search among the neighbours; a tie goes to the even pattern. x is not NaN.
  int round(double x) const {
    const int sign = std::signbit(x) ? 0x8000 : 0;
    const double size = std::fabs(x);
    int below = 0, above = infinity();
    if (size >= value(above)) return sign | above;
    while (above - below > 1) {
      const int middle = (below + above) / 2;
      (value(middle) <= size ? below : above) = middle;
    }
    const double down = size - value(below), up = value(above) - size;
    const bool upward = up < down || (up == down && below % 2 == 1);
    return sign | (upward ? above : below);
  }
};
constexpr Format half_format{5, 10}, bfloat16_format{8, 7};

float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// Every 16-bit value, every tie between two of them (the one with infinity too), and the floats beside all those.
std::vector<float> edges(const Format& format) {
  std::vector<float> x;
  for (int pattern = 0; pattern < format.infinity(); ++pattern) {
    const double value = format.value(pattern), tie = (value + format.value(pattern + 1)) / 2;
    for (const double centre : {value, tie}) {
      const float c = static_cast<float>(centre);
      for (const float near : {std::nextafter(c, -HUGE_VALF), c, std::nextafter(c, HUGE_VALF)}) {
        x.push_back(near);
        x.push_back(-near);
      }
    }
  }
  return x;
}

std::vector<float> stride_of_floats(uint64_t stride) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < (uint64_t(1) << 32); bits += stride)
    x.push_back(float_of(static_cast<uint32_t>(bits)));
  for (const float special : {HUGE_VALF, -HUGE_VALF, NAN, -NAN, float_of(0x7f800001), float_of(0xff800001)})
    x.push_back(special);
  return x;
}

template <class T, class From>
std::vector<T> rounded(const std::vector<From>& x) {
  std::vector<T> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = T(x[i]);  // a plain loop, as ops have it: the vectorised code is tested
  return y;
}

template <class T, class From>
void check_rounding(const Format& format, const std::vector<From>& x) {
  const std::vector<T> y = rounded<T>(x);
  size_t wrong = 0;
  double first_wrong = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool right = std::isnan(x[i]) ? (y[i].bits & 0x7fff) > format.infinity() : y[i].bits == format.round(x[i]);
    if (!right && wrong++ == 0) first_wrong = x[i];
  }
  CAPTURE(first_wrong);
  CHECK(wrong == 0);
}

template <class T>
void check_all_patterns(const Format& format) {
  std::vector<T> all(65536);
  for (int pattern = 0; pattern < 65536; ++pattern) all[pattern] = T::from_bits(static_cast<uint16_t>(pattern));
  std::vector<float> x(all.size());
  for (size_t i = 0; i < all.size(); ++i) x[i] = float(all[i]);
  const std::vector<T> back = rounded<T>(x);
  for (int pattern = 0; pattern < 65536; ++pattern) {
    CAPTURE(pattern);
    const int size = pattern & 0x7fff, quiet_bit = 1 << (format.mantissa_bits - 1);
    const double sign = pattern & 0x8000 ? -1 : 1;
    if (size > format.infinity()) {
      REQUIRE(std::isnan(x[pattern]));
      REQUIRE(back[pattern].bits == (pattern | quiet_bit));
    } else {
      REQUIRE(x[pattern] == sign * (size == format.infinity() ? HUGE_VAL : format.value(size)));
      REQUIRE(back[pattern].bits == pattern);  // also tells -0 from 0
    }
  }
}

// A tie and the doubles just beside it, which a detour through the nearest float would take for the tie.
std::vector<double> double_edges(const Format& format) {
  std::vector<double> x{0.0, -0.0, 1e-320, -1e-320, 1e300, -1e300, HUGE_VAL, NAN};
  for (int pattern = 0; pattern < format.infinity(); ++pattern) {
    const double tie = (format.value(pattern) + format.value(pattern + 1)) / 2;
    for (const double near : {tie * (1 - 1e-12), tie, tie * (1 + 1e-12)}) {
      x.push_back(near);
      x.push_back(-near);
    }
  }
  return x;
}

}  // namespace

TEST_CASE("half: the reference itself decodes and rounds known patterns") {
  CHECK(half_format.value(0x3c00) == 1);
  CHECK(half_format.value(0x7bff) == 65504);
  CHECK(half_format.value(0x0001) == 0x1p-24);
  CHECK(half_format.round(65519.99) == 0x7bff);
  CHECK(half_format.round(65520) == 0x7c00);
  CHECK(half_format.round(1 + 0x1p-11) == 0x3c00);
  CHECK(half_format.round(1 + 3 * 0x1p-11) == 0x3c02);
  CHECK(bfloat16_format.value(0x3f80) == 1);
  CHECK(bfloat16_format.value(0x0001) == 0x1p-133);
}

TEST_CASE("half: every pattern decodes exactly and comes back") {
  check_all_patterns<Half>(half_format);
  check_all_patterns<Bfloat16>(bfloat16_format);
}

TEST_CASE("half: floats round to nearest, ties to even, at every tie and subnormal") {
  check_rounding<Half>(half_format, edges(half_format));
  check_rounding<Bfloat16>(bfloat16_format, edges(bfloat16_format));
}

TEST_CASE("half: floats round to nearest over the whole range of float") {
  const std::vector<float> x = stride_of_floats(4999);
  REQUIRE(x.size() > 850000);
  check_rounding<Half>(half_format, x);
  check_rounding<Bfloat16>(bfloat16_format, x);
}

TEST_CASE("half: doubles and integers round once, not by way of the nearest float") {
  check_rounding<Half>(half_format, double_edges(half_format));
  check_rounding<Bfloat16>(bfloat16_format, double_edges(bfloat16_format));
  CHECK(Half(1 + 0x1p-11 + 0x1p-40).bits == 0x3c01);
  CHECK(Half(float(1 + 0x1p-11 + 0x1p-40)).bits == 0x3c00);  // what rounding twice gives
  CHECK(Half(2049).bits == Half(2048).bits);
  CHECK(float(Half(-7)) == -7);
  CHECK(float(Bfloat16((1 << 30) + (1 << 22) + 1)) == float((1 << 30) + (1 << 23)));
}

#if defined(__F16C__)
TEST_CASE("half: agrees with the processor's own conversion bit for bit, NaN included") {
  std::vector<float> x = stride_of_floats(4999);
  const std::vector<float> more = edges(half_format);
  x.insert(x.end(), more.begin(), more.end());
  const std::vector<Half> y = rounded<Half>(x);
  size_t wrong = 0;
  for (size_t i = 0; i < x.size(); ++i) wrong += y[i].bits != _cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT);
  CHECK(wrong == 0);
  for (int pattern = 0; pattern < 65536; ++pattern) {
    const float ours = float(Half::from_bits(static_cast<uint16_t>(pattern)));
    const float processor = _cvtsh_ss(static_cast<uint16_t>(pattern));
    REQUIRE(__builtin_bit_cast(uint32_t, ours) == __builtin_bit_cast(uint32_t, processor));
  }
}
#endif
