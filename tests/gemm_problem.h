// A product with operands on the host, run by any gemm and compared with three plain loops in double.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "engine/backend.h"
#include "engine/gemm.h"
#include "engine/tensor.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

namespace tapedeck::test {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

template <class T>
std::vector<T> numbers(int64_t count, unsigned seed, double range = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-range, range);
  std::vector<T> out(static_cast<size_t>(count));
  for (T& v : out) v = T(uniform(random));
  return out;
}

// A and B in T, C in TC. C begins as NaN where it must not be read.
template <class T, class TC = T>
struct Problem {
  using Run = std::function<void(const Gemm&)>;
  Gemm g;
  bool with_aux = false, with_bias_gradient = false;
  std::vector<T> a, b;
  std::vector<TC> c, bias, z;  // z: what gelu's or relu's backward reads
  const TC gap = TC(-77);      // between the products of a batch

  explicit Problem(const Gemm& shape, unsigned seed = 1) : g(shape) {
    g.dtype = dtype_of<T>;
    if (dtype_of<TC> != g.dtype) g.c_dtype = dtype_of<TC>;
    if (g.batch > 1 && g.stride_c == 0) g.stride_c = g.m * g.n;
    with_aux = is_backward() || (g.batch == 1 && (g.epilogue == Epilogue::bias_relu || is(Epilogue::bias_gelu)));
    with_bias_gradient = is_backward();
    const int64_t last = std::max<int64_t>(g.batch - 1, 0);
    a = numbers<T>(last * g.stride_a + g.m * g.k, seed);
    b = numbers<T>(last * g.stride_b + g.k * g.n, seed + 1);
    c.assign(static_cast<size_t>(last * g.stride_c + g.m * g.n), gap);
    bias = numbers<TC>(g.n, seed + 2);
    z = numbers<TC>(g.m * g.n, seed + 4, 4);
    const std::vector<TC> old = numbers<TC>(static_cast<int64_t>(c.size()), seed + 3);
    for (int64_t p = 0; p < g.batch; ++p)
      for (int64_t i = 0; i < g.m * g.n; ++i) {
        const size_t at = static_cast<size_t>(p * g.stride_c + i);
        c[at] = g.beta == 0 ? TC(nan) : old[at];
      }
  }
  bool is(Epilogue e) const { return g.epilogue == e; }
  bool is_backward() const { return is(Epilogue::drelu) || is(Epilogue::dgelu); }

  struct Result {
    std::vector<TC> c, aux;  // aux: z, or 1 where relu's mask is set and 0 elsewhere
    std::vector<Acc<TC>> bias_gradient;
    bool operator==(const Result&) const = default;
  };

  // `run` computes on the device that `memory` names.
  Result on(Device memory, const Run& run) const {
    const auto put = [&](const auto& v) { return Tensor::from(v, {static_cast<int64_t>(v.size())}, memory); };
    const bool has_mask = with_aux && (is(Epilogue::bias_relu) || is(Epilogue::drelu));
    const Tensor ta = put(a), tb = put(b), tc = put(c), tbias = put(bias);
    const Tensor tz = is(Epilogue::dgelu) ? put(z) : Tensor::full({g.m * g.n}, g.type_of_c(), memory, nan);
    const Tensor mask = Tensor::empty({static_cast<int64_t>(relu_mask_bytes(g.m, g.n) / 4)}, DType::i32, memory);
    const Tensor sums = Tensor::full({g.n}, dtype_of<Acc<TC>>, memory, nan);
    if (is(Epilogue::drelu)) write_mask(run, mask, memory);
    Gemm call = g;
    call.a = ta.data.begin(), call.b = tb.data.begin(), call.c = tc.data.begin();
    if (!is(Epilogue::none) && !is_backward()) call.bias = tbias.data.begin();
    if (with_aux) call.aux = has_mask ? mask.data.begin() : tz.data.begin();
    if (with_bias_gradient) call.bias_gradient = sums.data.begin();
    run(call);
    backend(memory).arena().check_red_zones();
    Result result{tc.template values<TC>(), tz.template values<TC>(), sums.template values<Acc<TC>>()};
    if (has_mask) result.aux = read_mask(run, mask, memory);
    return result;
  }
  Result on(Device device) const {
    return on(device, [device](const Gemm& call) { gemm(device, call); });
  }

  // The mask's layout is the device's own affair, so it is made and read by products: relu of 0 · a · b + z + 0 …
  void write_mask(const Run& run, const Tensor& mask, Device memory) const {
    const Tensor ones = Tensor::full({std::max(g.m, g.n)}, g.dtype, memory, 1);
    const Tensor y = Tensor::from(z, {g.m * g.n}, memory), zero = Tensor::full({g.n}, g.type_of_c(), memory, 0);
    Gemm forward{.m = g.m, .n = g.n, .k = 1, .dtype = g.dtype, .c_dtype = g.c_dtype, .alpha = 0, .beta = 1};
    forward.a = forward.b = ones.data.begin(), forward.c = y.data.begin();
    forward.epilogue = Epilogue::bias_relu, forward.bias = zero.data.begin(), forward.aux = mask.data.begin();
    run(forward);
  }
  // … and the backward of a product whose elements are all 1.
  std::vector<TC> read_mask(const Run& run, const Tensor& mask, Device memory) const {
    const Tensor ones = Tensor::full({std::max(g.m, g.n)}, g.dtype, memory, 1);
    const Tensor y = Tensor::empty({g.m * g.n}, g.type_of_c(), memory);
    Gemm backward{.m = g.m, .n = g.n, .k = 1, .dtype = g.dtype, .c_dtype = g.c_dtype};
    backward.a = backward.b = ones.data.begin(), backward.c = y.data.begin();
    backward.epilogue = Epilogue::drelu, backward.aux = mask.data.begin();
    run(backward);
    return y.template values<TC>();
  }

  struct Expected {
    double z, y, z_tolerance, y_tolerance;
  };
  // A sum of k products in Acc is off by at most k/2 eps times the sum of their absolute values. Storing 16 bits rounds
  // once more, twice where the epilogue is a kernel of its own.
  Expected expected(int64_t product, int64_t i, int64_t j) const {
    double sum = 0, size = 0;
    for (int64_t l = 0; l < g.k; ++l) {
      const double term = static_cast<double>(a[product * g.stride_a + (g.transpose_a ? l * g.m + i : i * g.k + l)]) *
                          static_cast<double>(b[product * g.stride_b + (g.transpose_b ? j * g.k + l : l * g.n + j)]);
      sum += term, size += std::abs(term);
    }
    const double old = g.beta == 0 ? 0 : g.beta * static_cast<double>(c[product * g.stride_c + i * g.n + j]);
    const double added = is(Epilogue::none) || is_backward() ? 0 : static_cast<double>(bias[j]);
    const double unit = eps(dtype_of<Acc<T>>) * (0.5 * static_cast<double>(g.k) + 4);
    const double rounding = sizeof(TC) == 2 ? eps(dtype_of<TC>) : 0;
    Expected e;
    e.z = g.alpha * sum + old + added;
    e.z_tolerance = unit * (std::abs(g.alpha) * size + std::abs(old) + std::abs(added)) +
                    rounding * (std::abs(e.z) + std::abs(e.z - added));
    e.y = e.z, e.y_tolerance = e.z_tolerance;
    const double kept = static_cast<double>(z[i * g.n + j]), x = is(Epilogue::dgelu) ? kept : e.z;
    const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x), t = std::tanh(u);
    const double slope = (1 + t) / 2 + x / 2 * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
    const double unit_of_gelu = 8 * eps(dtype_of<Acc<T>>) + rounding;  // a few roundings of its arithmetic
    if (is(Epilogue::bias_relu)) e.y = std::max(e.z, 0.0);
    if (is(Epilogue::bias_gelu))
      e.y = x / 2 * (1 + t), e.y_tolerance = 1.13 * e.z_tolerance + unit_of_gelu * std::abs(x);
    if (is(Epilogue::drelu) && !(kept > 0)) e.y = e.y_tolerance = 0;
    if (is(Epilogue::dgelu))  // the slope is at most 1.13
      e.y = e.z * slope, e.y_tolerance = 1.13 * e.z_tolerance + unit_of_gelu * (1 + std::abs(x)) * std::abs(e.z);
    return e;
  }

  void check(Device memory, const Run& run) const {
    CAPTURE(name(memory));
    CAPTURE(std::string(name(g.dtype)) + " -> " + name(g.type_of_c()) + ", " + name(g.epilogue));
    CAPTURE((std::vector<int64_t>{g.m, g.n, g.k, g.transpose_a, g.transpose_b, g.batch}));
    CAPTURE((std::vector<double>{g.alpha, g.beta}));
    const Result result = on(memory, run);
    std::vector<bool> written(c.size(), false);
    std::vector<double> sums(static_cast<size_t>(g.n)), sums_tolerance(static_cast<size_t>(g.n));
    int64_t wrong = 0, wrong_aux = 0, wrong_sums = 0, wrong_gaps = 0;
    for (int64_t p = 0; p < g.batch; ++p)
      for (int64_t i = 0; i < g.m; ++i)
        for (int64_t j = 0; j < g.n; ++j) {
          const size_t at = static_cast<size_t>(p * g.stride_c + i * g.n + j);
          const Expected e = expected(p, i, j);
          wrong += !(std::abs(static_cast<double>(result.c[at]) - e.y) <= e.y_tolerance);
          if (with_aux) wrong_aux += !aux_is_right(static_cast<double>(result.aux[i * g.n + j]), e, i * g.n + j);
          sums[j] += e.y;
          sums_tolerance[j] += e.y_tolerance + eps(dtype_of<Acc<TC>>) * static_cast<double>(g.m) * std::abs(e.y);
          written[at] = true;
        }
    for (int64_t j = 0; with_bias_gradient && j < g.n; ++j)
      wrong_sums += !(std::abs(static_cast<double>(result.bias_gradient[j]) - sums[j]) <= sums_tolerance[j]);
    for (size_t at = 0; at < c.size(); ++at) wrong_gaps += !written[at] && float(result.c[at]) != float(gap);
    CHECK_EQ(wrong, 0);
    CHECK_EQ(wrong_aux, 0);
    CHECK_EQ(wrong_sums, 0);
    CHECK_EQ(wrong_gaps, 0);
  }
  void check(Device device) const {
    check(device, [device](const Gemm& call) { gemm(device, call); });
  }

  bool aux_is_right(double value, const Expected& e, int64_t at) const {
    if (is(Epilogue::bias_gelu)) return std::abs(value - e.z) <= e.z_tolerance;
    if (is(Epilogue::bias_relu)) return std::abs(e.z) <= e.z_tolerance || value == (e.z > 0 ? 1 : 0);
    const double kept = static_cast<double>(z[at]);  // backward: unchanged
    return value == (is(Epilogue::dgelu) ? kept : kept > 0 ? 1 : 0);
  }
};

class CheckedCpu {  // red zones behind every buffer on the CPU, and NaN in fresh memory
 public:
  CheckedCpu() { backend(Device::cpu).arena().set_checked(true); }
  ~CheckedCpu() { backend(Device::cpu).arena().set_checked(false); }
  CheckedCpu(const CheckedCpu&) = delete;
  CheckedCpu& operator=(const CheckedCpu&) = delete;
};

}  // namespace tapedeck::test
