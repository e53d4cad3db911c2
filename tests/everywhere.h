// A test on every device in f64 and f32.
#pragma once
#include <string>
#include <vector>

#include "ops/ops.h"
#include "tests/gpu.h"

#undef CHECK  // the engine's, which throws; here it is doctest's
#include <doctest/doctest.h>

namespace tapedeck::test {

inline Tensor tensor(const std::vector<double>& values, const Shape& shape, Device device, DType dtype) {
  return cast(Tensor::from(values, shape), dtype).to(device);
}

template <class F>
void everywhere(const F& f) {  // f(device, dtype)
  for (Device device : all_devices())
    for (DType dtype : {DType::f64, DType::f32}) {
      INFO("on " << std::string(name(device)) << " in " << std::string(name(dtype)));
      f(device, dtype);
    }
}

}  // namespace tapedeck::test
