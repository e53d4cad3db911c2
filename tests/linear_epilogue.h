// Layers whose gradient goes through relu or gelu in the next layer's product, and the same with the activation as an
// op of its own, for tests that compare the two.
#pragma once
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "engine/offer.h"
#include "ops/ops.h"
#include "tests/gpu.h"
#include "tests/leaves.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

namespace tapedeck::test {

inline Tensor numbers(const Shape& shape, double phase, Device device, DType dtype) {
  std::vector<double> x;
  for (int64_t i = 0; i < shape.count(); ++i) x.push_back(std::sin(1.7 * static_cast<double>(i) + phase));
  return cast(Tensor::from(x, shape, device), dtype);
}

enum class How { joined, apart, used_twice };  // apart: the activation is an op of its own

struct LayerSetting {
  Device device = Device::cpu;
  DType dtype = DType::f64;
  Activation activation = Activation::gelu;
  int layers = 3;
  bool bias = true;
};

inline void check_equal(const Values& a, const Values& b, double tolerance) {
  REQUIRE_EQ(a.size(), b.size());
  double size = 0, off = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    size = std::max(size, std::abs(b[i]));
    off = std::max(off, std::isfinite(a[i]) ? std::abs(a[i] - b[i]) : INFINITY);
  }
  CHECK(size > 0);
  CHECK(off <= tolerance * size);
}
inline void check_equal(const std::vector<Values>& a, const std::vector<Values>& b, double tolerance) {
  REQUIRE_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) check_equal(a[i], b[i], tolerance);
}

// f(setting, whether its layers offer dL/dz: relu's do not on the CPU).
template <class F>
void with_settings(F&& f) {
  for (Device device : all_devices())
    for (Activation activation : {Activation::relu, Activation::gelu}) {
      CAPTURE(std::string(name(device)));
      CAPTURE(static_cast<int>(activation));
      f(LayerSetting{.device = device, .activation = activation},
        device != Device::cpu || activation == Activation::gelu);
    }
}

}  // namespace tapedeck::test
