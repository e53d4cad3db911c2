// What test_ops.cpp does not show of layer_norm and rms_norm: rows that ask much of the arithmetic, and what the sum
// with a residual branch keeps.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ops/ops.h"
#include "tests/everywhere.h"

using namespace tapedeck;
using test::everywhere;
using test::tensor;

// Fault: the variance was mean x² − (mean x)², two numbers of the size of 10⁸ in f32 whose difference is 1: rows of
// 10,000 and small noise came out with another variance, or as NaN.
TEST_CASE("layer_norm of small differences on a large mean has mean 0 and variance 1") {
  constexpr int64_t cols = 200;
  std::vector<double> x(cols), expected(cols);
  double mean = 0, variance = 0;
  for (size_t j = 0; j < cols; ++j) x[j] = 1e4 + static_cast<double>(j * j % 127) / 64 - 1;  // exact in f32
  for (const double value : x) mean += value / cols;
  for (const double value : x) variance += (value - mean) * (value - mean) / cols;
  for (size_t j = 0; j < cols; ++j) expected[j] = (x[j] - mean) / std::sqrt(variance + 1e-5);
  everywhere([&](Device device, DType dtype) {
    const Tensor one = Tensor::full({cols}, dtype, device, 1);
    const std::vector<double> y = layer_norm(tensor(x, {1, cols}, device, dtype), one, {}).doubles();
    // The mean is right to half an ulp of 10⁴, relative to a standard deviation of 0.6; twice that, for other
    // roundings.
    const double tolerance = 1e4 * eps(dtype) / std::sqrt(variance);
    for (size_t j = 0; j < cols; ++j) CHECK(std::abs(y[j] - expected[j]) <= tolerance);
  });
}

// Fault: the mean of equal numbers was rounded, and what was left of them, times 1 / √eps = 316, passed for a signal.
TEST_CASE("layer_norm of equal numbers is the bias, and its gradient is finite") {
  everywhere([](Device device, DType dtype) {
    const Tensor bias = tensor({1, -2, 3, 0.5, 7}, {5}, device, dtype);
    for (const double value : {0.0, 0.1, -1e4, 1e30}) {
      INFO("rows of " << value);
      Tensor x = Tensor::full({3, 5}, dtype, device, value);
      x.require_gradient();
      Tape tape;
      const Tensor y = layer_norm(x, Tensor::full({5}, dtype, device, 2), bias);
      for (size_t i = 0; i < 15; ++i) CHECK(y.doubles()[i] == bias.doubles()[i % 5]);
      tape.backward(sum(mul(y, tensor({1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6}, {3, 5}, device, dtype))));
      for (const double slope : x.gradient().doubles()) CHECK(std::isfinite(slope));
    }
  });
}

TEST_CASE("add_layer_norm is add and layer_norm, to the bit, and keeps no more") {
  everywhere([](Device device, DType dtype) {
    std::vector<double> some(6 * 40), other(6 * 40);
    for (size_t i = 0; i < some.size(); ++i) {
      some[i] = std::sin(static_cast<double>(i));
      other[i] = std::cos(static_cast<double>(3 * i));
    }
    struct Run {
      std::vector<double> sum, normed, dx, dbranch, dgain;
      size_t saved;
    };
    const auto run = [&](bool fused) {
      Tensor x = tensor(some, {6, 40}, device, dtype), branch = tensor(other, {6, 40}, device, dtype);
      Tensor gain = Tensor::full({40}, dtype, device, 1.5), bias = Tensor::full({40}, dtype, device, 0.5);
      for (Tensor* leaf : {&x, &branch, &gain, &bias}) leaf->require_gradient();
      Tape tape;
      Residual y;
      if (fused) {
        y = add_layer_norm(x, branch, gain, bias);
      } else {
        y.sum = add(x, branch);
        y.normed = layer_norm(y.sum, gain, bias);
      }
      const size_t saved = tape.saved_bytes();
      tape.backward(sum(mul(y.normed, y.sum)));
      return Run{y.sum.doubles(),           y.normed.doubles(),
                 x.gradient().doubles(),    branch.gradient().doubles(),
                 gain.gradient().doubles(), saved};
    };
    const Run one = run(true), two = run(false);
    CHECK(one.sum == two.sum);
    CHECK(one.normed == two.normed);
    CHECK(one.dx == two.dx);
    CHECK(one.dbranch == two.dbranch);
    CHECK(one.dgain == two.dgain);
    CHECK(one.saved == two.saved);
    CHECK(std::any_of(one.dx.begin(), one.dx.end(), [](double slope) { return std::abs(slope) > 0.01; }));
  });
}
