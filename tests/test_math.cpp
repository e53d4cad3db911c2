// The float functions of engine/math.h against the double ones of the standard library: the errors that the header
// states, over a stride of all floats and around every point where something changes.
#include "engine/math.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace {

constexpr float inf = HUGE_VALF;

float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }
uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }

// Every 997th float, both signs, and 1,000 floats to each side of where a function starts, ends or changes formula.
const std::vector<float>& samples() {
  static const std::vector<float> all = [] {
    std::vector<float> x;
    for (uint64_t bits = 0; bits < (uint64_t(1) << 32); bits += 997) x.push_back(float_of(static_cast<uint32_t>(bits)));
    for (const float point : {0.0f,         0x1p-126f,  0.25f,       0.34657359f, 0.5f,        0.70710678f, 0.9f,
                              1.0f,         1.4142135f, 2.0f,        3.92f,       4.0f,        9.02f,       10.0f,
                              87.33654475f, 88.722839f, 89.0f,       103.97208f,  104.0f,      0x1p127f,    inf,
                              0.17328680f,  1.0397208f, 0.51986039f, 1.7328680f,  43.6682724f, 0x1p-63f,    0x1p64f}) {
      for (int step = -1000; step <= 1000; ++step) {
        x.push_back(float_of(bits_of(point) + static_cast<uint32_t>(step)));
        x.push_back(-x.back());
      }
    }
    return x;
  }();
  return all;
}

double ulp(float y) {  // the distance of floats near y; 2^-149 among the subnormals
  int exponent;
  std::frexp(y, &exponent);
  return std::ldexp(1.0, std::max(exponent, -125) - 24);
}

struct Worst {
  double error = 0;  // in ulp
  float at = 0;
  size_t compared = 0, misfits = 0;  // misfits: not NaN or not infinite where it had to be, or the other way round
  float misfit = 0;
};

template <class F, class Reference>
Worst worst_error(F f, Reference reference) {
  const std::vector<float>& x = samples();
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = f(x[i]);  // a plain loop: the vectorised code is tested
  Worst worst;
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = reference(static_cast<double>(x[i]));
    const float nearest = static_cast<float>(exact);
    const bool same_kind = std::isnan(nearest)   ? std::isnan(y[i])
                           : std::isinf(nearest) ? y[i] == nearest
                                                 : std::isfinite(y[i]);
    if (!same_kind) {
      if (worst.misfits++ == 0) worst.misfit = x[i];
    } else if (std::isfinite(nearest)) {
      const double error = std::fabs(y[i] - exact) / ulp(nearest);
      if (error > worst.error) worst.error = error, worst.at = x[i];
      ++worst.compared;
    }
  }
  return worst;
}

template <class F, class Reference>
void check_error(F f, Reference reference, double stated) {
  const Worst worst = worst_error(f, reference);
  INFO("worst ", worst.error, " ulp at ", worst.at, "; ", worst.misfits, " misfits, first at ", worst.misfit);
  CHECK(worst.misfits == 0);
  CHECK(worst.compared > 1000000);
  CHECK(worst.error <= stated);
  CHECK(worst.error > 0.4);  // rounding alone leaves nearly half: less would mean that nothing was compared
}

}  // namespace

TEST_CASE("math: exp is within 1.1 ulp") {
  check_error([](float x) { return tapedeck::exp(x); }, [](double x) { return std::exp(x); }, 1.1);
}
TEST_CASE("math: log is within 0.9 ulp") {
  check_error([](float x) { return tapedeck::log(x); }, [](double x) { return std::log(x); }, 0.9);
}
TEST_CASE("math: tanh is within 2.7 ulp") {
  check_error([](float x) { return tapedeck::tanh(x); }, [](double x) { return std::tanh(x); }, 2.7);
}
TEST_CASE("math: erf is within 1.3 ulp") {
  check_error([](float x) { return tapedeck::erf(x); }, [](double x) { return std::erf(x); }, 1.3);
}
TEST_CASE("math: sigmoid is within 2.5 ulp, and 0 where e^-x overflows") {
  const auto reference = [](double x) { return std::exp(-x) > 0x1.fffffefp127 ? 0 : 1 / (1 + std::exp(-x)); };
  check_error([](float x) { return tapedeck::sigmoid(x); }, reference, 2.5);
}
TEST_CASE("math: rsqrt is within 1.5 ulp") {
  check_error([](float x) { return tapedeck::rsqrt(x); }, [](double x) { return 1 / std::sqrt(x); }, 1.5);
}

TEST_CASE("math: special values") {
  using tapedeck::erf, tapedeck::exp, tapedeck::log, tapedeck::rsqrt, tapedeck::sigmoid, tapedeck::tanh;
  CHECK(exp(0.0f) == 1);
  CHECK(exp(-0.0f) == 1);
  CHECK(exp(inf) == inf);
  CHECK(exp(-inf) == 0);
  CHECK(exp(88.72283f) < inf);
  CHECK(exp(88.72284f) == inf);
  CHECK(exp(-103.0f) == float_of(1));  // the smallest subnormal
  CHECK(exp(-104.0f) == 0);
  CHECK(log(1.0f) == 0);
  CHECK(log(0.0f) == -inf);
  CHECK(log(-0.0f) == -inf);
  CHECK(log(inf) == inf);
  CHECK(std::isnan(log(-1.0f)));
  CHECK(std::isnan(log(-float_of(1))));
  CHECK(std::isnan(log(-inf)));
  CHECK(tanh(inf) == 1);
  CHECK(tanh(-inf) == -1);
  CHECK(std::signbit(tanh(-0.0f)));
  CHECK(tanh(float_of(1)) == float_of(1));
  CHECK(erf(inf) == 1);
  CHECK(erf(-inf) == -1);
  CHECK(std::signbit(erf(-0.0f)));
  CHECK(sigmoid(0.0f) == 0.5f);
  CHECK(sigmoid(inf) == 1);
  CHECK(sigmoid(-inf) == 0);
  CHECK(rsqrt(4.0f) == 0.5f);
  CHECK(rsqrt(0.0f) == inf);
  CHECK(rsqrt(inf) == 0);
  for (const float nan : {NAN, -NAN})
    for (const float y : {exp(nan), log(nan), tanh(nan), erf(nan), sigmoid(nan), rsqrt(nan)}) CHECK(std::isnan(y));
}

TEST_CASE("math: tanh and erf are odd and stay within [-1, 1], exp is never negative") {
  size_t wrong = 0;
  for (const float x : samples()) {
    if (std::isnan(x)) continue;
    wrong += tapedeck::tanh(x) != -tapedeck::tanh(-x) || std::fabs(tapedeck::tanh(x)) > 1;
    wrong += tapedeck::erf(x) != -tapedeck::erf(-x) || std::fabs(tapedeck::erf(x)) > 1;
    wrong += std::signbit(tapedeck::exp(x));
  }
  CHECK(wrong == 0);
}

TEST_CASE("math: the double functions keep double's precision") {
  const double tolerance = 1e-15;  // 4 eps of a number near 1
  CHECK(std::fabs(tapedeck::exp(1.0) - 2.718281828459045) < 2 * tolerance);
  CHECK(std::fabs(tapedeck::log(3.0) - 1.0986122886681098) < tolerance);
  CHECK(std::fabs(tapedeck::tanh(0.7) - 0.6043677771171636) < tolerance);
  CHECK(std::fabs(tapedeck::erf(0.7) - 0.6778011938374185) < tolerance);
  CHECK(std::fabs(tapedeck::sigmoid(0.7) - 0.6681877721681662) < tolerance);
  CHECK(std::fabs(tapedeck::rsqrt(3.0) - 0.5773502691896258) < tolerance);
}
