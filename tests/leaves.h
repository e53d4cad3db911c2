// Leaves and their gradients as plain numbers, for tests of the tape.
#pragma once
#include <vector>

#include "engine/tensor.h"

namespace tapedeck::test {

using Values = std::vector<double>;

inline Tensor leaf(const Values& values) {
  Tensor x = Tensor::from(values, {static_cast<int64_t>(values.size())});
  x.require_gradient();
  return x;
}
inline Tensor number(double value) {
  Tensor x = Tensor::full({}, DType::f64, Device::cpu, value);
  x.require_gradient();
  return x;
}
inline Values gradient(const Tensor& x) { return x.gradient().doubles(); }

}  // namespace tapedeck::test
