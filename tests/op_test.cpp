#include "tests/op_test.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <sstream>

#include "tests/gpu.h"
#include "tests/op_test_run.h"

namespace tapedeck::op_test {
namespace {

constexpr DType tested_types[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

bool is_half(DType dtype) { return size_of(dtype) == 2; }

// ---- Tolerances ----------------------------------------------------------------------------------------------------
// A number that is a sum of n terms gathers n rounding errors of random sign: about √n of one. A term passes at most
// eight roundings of eps / 2 (its products, an exp or tanh that is right to 2 ulp, a division, the store), so k = 4. n
// is the size of the largest input: no op sums over more. Errors are relative to the number itself or, where terms
// cancel, to what is usual in its array.
constexpr double k = 4;
// In 16 bits only what is stored is rounded, sums run in f32; so their length hardly matters.
double rounding(DType dtype, int64_t n) {
  if (is_half(dtype)) return k * eps(dtype) + rounding(DType::f32, n);
  return k * eps(dtype) * std::sqrt(static_cast<double>(std::max<int64_t>(n, 1)));
}

// Central differences with the step h = eps^⅓ err by h² f'''/6 from the curve and by eps |y| / h from rounding, which
// are both of the order eps^⅔; their factors stay below 100 for the ranges that the lines use.
double difference_step(DType dtype) { return std::cbrt(eps(dtype)); }
double difference_error(DType dtype) { return 100 * std::pow(eps(dtype), 2.0 / 3); }
constexpr int64_t difference_samples = 48;  // elements of an input that are tried, spread evenly over it

DType coarser(DType a, DType b) { return eps(a) > eps(b) ? a : b; }

// ---- Comparing -----------------------------------------------------------------------------------------------------
std::string index_text(const Shape& shape, int64_t i) {
  std::string out;
  for (int axis = shape.rank() - 1; axis >= 0; i /= shape[axis--])
    out = std::to_string(i % shape[axis]) + (out.empty() ? "" : ", ") + out;
  return "[" + out + "]";
}

double typical(const Array& x) {  // root mean square
  double sum = 0;
  for (double value : x.values) sum += value * value;
  return x.count() == 0 ? 0 : std::sqrt(sum / static_cast<double>(x.count()));
}

void expect_near(const Setting& s, const std::string& what, const Array& got, const Array& expected, double relative) {
  if (got.shape != expected.shape) {
    DOCTEST_FAIL_CHECK(s.str(), ": ", what, " has shape ", got.shape.str(), ", expected ", expected.shape.str());
    return;
  }
  const double usual = typical(expected);
  int64_t wrong = 0;
  std::ostringstream first;
  first.precision(17);
  for (int64_t i = 0; i < got.count(); ++i) {
    const double tolerance = relative * std::max(std::abs(expected[i]), usual);
    if (std::abs(got[i] - expected[i]) <= tolerance) continue;  // false for NaN
    if (wrong++ == 0)
      first << " at " << index_text(got.shape, i) << " got " << got[i] << ", expected " << expected[i] << ", tolerance "
            << tolerance;
  }
  DOCTEST_CHECK_MESSAGE(wrong == 0, s.str(), ": ", what, first.str(), " (", wrong, " of ", got.count(), " wrong)");
}

// Value and gradients of `got` within `relative` of `factor` times those of `expected`.
void expect_same(const Setting& s, const std::string& what, const Outcome& got, const Outcome& expected,
                 double relative, double factor = 1) {
  expect_near(s, what + ": value", got.y, expected.y, relative);
  for (size_t i = 0; i < got.dx.size(); ++i)
    if (got.dx[i].count() > 0)
      expect_near(s, what + ": gradient of input " + std::to_string(i), got.dx[i], naive::scale(expected.dx[i], factor),
                  relative);
}

bool same_bits(const Array& a, const Array& b) {  // unlike ==, tells −0 from 0 and NaN is itself
  return std::ranges::equal(a.values, b.values, {}, std::bit_cast<uint64_t, double>, std::bit_cast<uint64_t, double>);
}

// ---- The checks ----------------------------------------------------------------------------------------------------
void check_gradient(const Setting& s, const Outcome& plain, bool zero_by_nature) {
  const Array r = projections(plain.y.shape);
  const DType dtype = coarser(s.dtype, plain.dtype);
  const auto y_at = [&](size_t input, int64_t element, double x) {
    Setting moved = s;
    moved.inputs[input][element] = x;
    return run(moved, {.asked = 0}).y;
  };
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    const Array& dx = plain.dx[i];
    if (dx.count() == 0) continue;
    double steepest = 0, highest = 0;
    for (double slope : dx.values) steepest = std::max(steepest, std::abs(slope));
    for (double y : plain.y.values) highest = std::max(highest, std::abs(y));
    const double tolerance = difference_error(dtype) * std::max(highest, steepest);
    if (zero_by_nature)
      DOCTEST_CHECK_MESSAGE(steepest <= tolerance, s.str(), ": gradient of input ", i, " is not zero but ", steepest);
    else
      DOCTEST_CHECK_MESSAGE(steepest > 100 * tolerance, s.str(), ": gradient of input ", i,
                            " is zero everywhere (largest ", steepest, "): that proves nothing");

    const int64_t samples = std::min(dx.count(), difference_samples);
    for (int64_t sample = 0; sample < samples; ++sample) {
      const int64_t at = sample * dx.count() / samples;
      const double x = s.inputs[i][at], step = difference_step(dtype) * std::max(1.0, std::abs(x));
      const double above = x + step, below = x - step;
      const Array high = y_at(i, at, above), low = y_at(i, at, below);
      double difference = 0;
      for (int64_t j = 0; j < r.count(); ++j) difference += r[j] * (high[j] - low[j]);
      const double slope = difference / (above - below);
      const bool close = std::abs(dx[at] - slope) <= tolerance;
      DOCTEST_CHECK_MESSAGE(close, s.str(), ": gradient of input ", i, " at ", index_text(dx.shape, at), " got ",
                            dx[at], ", central difference ", slope, ", tolerance ", tolerance);
      if (!close) break;
    }
  }
}

void expect_same_bits(const Setting& s, const std::string& what, const Outcome& got, const Outcome& expected) {
  DOCTEST_CHECK_MESSAGE(same_bits(got.y, expected.y), s.str(), ": ", what, " gives other values");
  for (size_t i = 0; i < s.inputs.size(); ++i)
    DOCTEST_CHECK_MESSAGE(same_bits(got.dx[i], expected.dx[i]), s.str(), ": ", what, " gives other gradients of input ",
                          i);
}

void check_fan_out(const Setting& s, const Outcome& plain, double relative) {
  expect_same(s, "used twice", run(s, {.uses = 2}), plain, relative, 2);

  const unsigned all = (1u << s.inputs.size()) - 1;
  for (unsigned asked = 0; asked < all; ++asked) {
    const Outcome some = run(s, {.asked = asked});
    expect_same(s, "gradients asked: " + std::to_string(asked) + " of " + std::to_string(all), some, plain, relative);
    for (size_t i = 0; i < s.inputs.size(); ++i)
      DOCTEST_CHECK_MESSAGE(((asked >> i & 1) || some.dx[i].count() == 0), s.str(), ": input ", i,
                            " asked for nothing");
  }

  if (s.inputs.size() < 2) return;
  Setting equal = s;
  for (size_t i = 1; i < s.inputs.size(); ++i) {
    if (!s.floating(i) || s.inputs[i].shape != s.inputs[0].shape) return;
    equal.inputs[i] = s.inputs[0];
  }
  Outcome apart = run(equal, {});
  for (size_t i = 1; i < s.inputs.size(); ++i) apart.dx[0] = naive::add(apart.dx[0], apart.dx[i]);
  for (Array& dx : apart.dx) dx = apart.dx[0];
  expect_same(s, "the same tensor for every input", run(equal, {.same_input = true}), apart, relative);
}

void check_case(const std::string& op, const Case& call, int64_t extent, DType dtype, bool zero_by_nature) {
  Setting s{op, call, dtype, {}};
  for (const Input& input : call.inputs)
    s.inputs.push_back(make(input, extent, dtype, 17 + static_cast<uint32_t>(s.inputs.size())));

  const Outcome plain = run(s, {});
  expect_same_bits(s, "a second run", run(s, {}), plain);
  expect_same_bits(s, "recompute", run(s, {.recomputed = true}), plain);

  zero_by_nature |= plain.y.count() == 0;
  const double relative = rounding(coarser(dtype, plain.dtype), s.largest());
  expect_near(s, "value", plain.y, call.oracle(s.inputs), relative);

  if (dtype == DType::f64)
    check_gradient(s, plain, zero_by_nature);
  else
    expect_same(s, "against f64", plain, run({op, call, DType::f64, s.inputs}, {}), relative);

  if (!is_half(dtype)) check_fan_out(s, plain, relative);

  for (const Device device : test::devices_with_lanes()) {
    const Outcome there = run(s, {.device = device});
    expect_same(s, name(device), there, plain, relative);
    expect_same_bits(s, "captured and replayed", run(s, {.device = device, .replayed = true}), there);
    expect_same_bits(s, "recomputed, captured and replayed",
                     run(s, {.device = device, .replayed = true, .recomputed = true}), there);
  }
  const How reverse{.device = Device::emulated, .order = emulation::Order::reverse};
  expect_same(s, reverse.str(), run(s, reverse), plain, relative);
}

Device other(Device device) { return device == Device::cpu ? Device::emulated : Device::cpu; }

void check_rejection(const std::string& op, const Rejection& rejection, Device device) {
  std::vector<Tensor> inputs;
  for (const Input& input : rejection.call.inputs)
    inputs.push_back(to_tensor(make(input, 1, DType::f32, 17), type_of(input, DType::f32),
                               input.elsewhere ? other(device) : device));
  std::string message;
  try {
    rejection.call.op(inputs);
  } catch (const Error& error) {
    message = error.what();
  }
  DOCTEST_CHECK_MESSAGE(!message.empty(), op, " on ", std::string(name(device)),
                        " took what it should refuse: ", rejection.words);
  if (message.empty()) return;
  DOCTEST_CHECK_MESSAGE((message.find(op) != std::string::npos && message.find(rejection.words) != std::string::npos),
                        op, " on ", std::string(name(device)), " should say \"", rejection.words,
                        "\", said: ", message);
}

bool is_ragged(const Case& call) {
  return std::any_of(call.inputs.begin(), call.inputs.end(), [](const Input& input) {
    return std::count(input.extents.begin(), input.extents.end(), ragged) > 0;
  });
}

class CheckedMemory {  // while it lives, the cpu fills fresh memory with NaN and keeps red zones, as emulated always
                       // does
 public:
  CheckedMemory() { backend(Device::cpu).arena().set_checked(true); }
  ~CheckedMemory() { backend(Device::cpu).arena().set_checked(false); }
  CheckedMemory(const CheckedMemory&) = delete;
  CheckedMemory& operator=(const CheckedMemory&) = delete;
};

}  // namespace

Input Input::range(double lowest, double highest) const {
  Input changed = *this;
  changed.low = lowest;
  changed.high = highest;
  return changed;
}
Input Input::away_from_0() const {
  Input changed = *this;
  changed.gap = 0.1;
  return changed;
}
Input Input::as(DType dtype) const {
  Input changed = *this;
  changed.only = dtype;
  return changed;
}
Input Input::on_another_device() const {
  Input changed = *this;
  changed.elsewhere = true;
  return changed;
}
Input Input::ignoring_every(int64_t step) const {
  Input changed = *this;
  changed.ignored_every = step;
  return changed;
}
Input labels(int64_t rows, int64_t classes) { return Input{.extents = {rows}, .classes = classes}; }

std::map<std::string, OpTest>& op_tests() {
  static std::map<std::string, OpTest> tests;
  return tests;
}

void run_op_test(const std::string& op_name) {
  const OpTest& test = op_tests().at(op_name);
  const CheckedMemory checked;
  std::map<Device, Arena::Use> before;
  for (Device device : test::all_devices()) before[device] = backend(device).arena().use();

  for (const Case& call : test.cases)
    for (int64_t extent : ragged_extents) {
      for (DType dtype : tested_types)
        if (!is_half(dtype) || !is_ragged(call) || extent == 33)  // the same kernels, and half the time of the tests
          check_case(op_name, call, extent, dtype, is_ragged(call) && extent == test.zero_gradient_at);
      if (!is_ragged(call)) break;
    }
  for (const Rejection& rejection : test.rejections)
    for (Device device : test::all_devices()) check_rejection(op_name, rejection, device);

  for (const auto& entry : before) {  // clang 14 captures no structured binding in doctest's lambdas
    const Device device = entry.first;
    const Arena::Use now = backend(device).arena().use(), then = entry.second;
    DOCTEST_CHECK_MESSAGE((now.buffers == then.buffers && now.bytes == then.bytes), op_name, " leaves ",
                          now.buffers - then.buffers, " tensors alive on ", std::string(name(device)));
  }
}

}  // namespace tapedeck::op_test
