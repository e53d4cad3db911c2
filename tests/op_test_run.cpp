#include "tests/op_test_run.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "engine/emulation/emulated_device.h"
#include "engine/recompute.h"
#include "tests/gpu.h"
#include "tests/settings.h"

namespace tapedeck::op_test {

// ---- Numbers in and out --------------------------------------------------------------------------------------------
DType type_of(const Input& input, DType tested) {
  return input.classes != 0 ? DType::i32 : input.only.value_or(tested);
}

Tensor to_tensor(const Array& array, DType dtype, Device device) {
  const auto converted = [&]<class T>() {
    std::vector<T> values;
    for (double value : array.values) values.push_back(static_cast<T>(value));
    return Tensor::from(values, array.shape, device);
  };
  return dtype == DType::i32 ? converted.template operator()<int32_t>() : with_dtype(dtype, converted);
}

Array make(const Input& input, int64_t ragged_extent, DType tested, uint32_t seed) {
  const auto actual = [&](int64_t extent) { return extent == ragged ? ragged_extent : extent; };
  Shape shape;
  for (int64_t extent : input.extents) shape.push(actual(extent));
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(input.low, input.high);
  Array x(shape);
  for (int64_t i = 0; i < x.count(); ++i) {
    if (input.classes != 0) {
      const bool ignored = input.ignored_every != 0 && i % input.ignored_every == 0;
      x[i] = ignored ? ignored_label : static_cast<double>(random() % static_cast<uint64_t>(actual(input.classes)));
    } else {
      x[i] = uniform(random);
      x[i] += std::copysign(input.gap, x[i]);
    }
  }
  return {shape, to_tensor(x, type_of(input, tested), Device::cpu).doubles()};
}

Array projections(const Shape& shape) {
  Array r(shape);
  for (int64_t i = 0; i < r.count(); ++i) {
    const auto mixed = static_cast<uint32_t>(i + 1) * 2654435761u;  // Knuth's multiplicative hash
    r[i] = ((mixed >> 26) / 64.0 + 0.5) * (mixed >> 25 & 1 ? 1 : -1);
  }
  return r;
}

// ---- What and how --------------------------------------------------------------------------------------------------
bool Setting::floating(size_t input) const { return is_floating(type_of(call.inputs[input], dtype)); }

int64_t Setting::largest() const {
  int64_t n = 0;
  for (const Array& x : inputs) n = std::max(n, x.count());
  return n;
}

std::string Setting::str() const {
  std::string out = op + " " + name(dtype);
  for (const Array& x : inputs) out += " " + x.shape.str();
  return out;
}

std::string How::str() const {
  std::string out = name(device);
  if (device == Device::emulated)
    out += order == emulation::Order::forward ? ", lanes forward" : ", lanes in reverse, deferred";
  if (uses > 1) out += ", used twice";
  if (same_input) out += ", the same tensor for every input";
  if (recomputed) out += ", recomputed";
  return out;
}

// ---- A run ---------------------------------------------------------------------------------------------------------
namespace {

// L = Σ r ∘ y, summed over all uses: written by hand, so that the ruler is made of no op. Its own value is of no
// interest, only that dL/dy = r.
Tensor project(const std::vector<Tensor>& uses, const Tensor& r) {
  const std::vector<Want> wants(uses.begin(), uses.end());
  const Tensor loss = Tensor::full({}, r.dtype, r.device(), 0);
  return record("project", loss, {&uses.front(), &uses.back()}, [wants, r](const Tensor&) {
    for (const Want& want : wants) want.give(r);
  });
}

void replay(Device device, const std::function<void()>& pass) {
  const auto graph = backend(device).capture(pass);
  for (int i = 0; i < 3; ++i) graph->replay();
}

void check_untouched(const Tensor& t, const Array& before, const std::string& what) {
  DOCTEST_CHECK_MESSAGE(t.doubles() == before.values, "the op wrote to ", what);
}

}  // namespace

Outcome run(const Setting& s, const How& how) {
  DOCTEST_INFO(s.str(), " on ", how.str());
  const test::LaneOrder lanes(how.order);  // in reverse nothing runs before somebody waits, either
  const emulation::UseMode mode(how.order == emulation::Order::reverse ? emulation::Mode::lazy
                                                                       : emulation::Mode::eager);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    const bool again = how.same_input && i > 0;
    inputs.push_back(again ? inputs[0] : to_tensor(s.inputs[i], type_of(s.call.inputs[i], s.dtype), how.device));
    if (!again && s.floating(i) && (how.asked >> i & 1)) inputs[i].require_gradient();
  }

  std::vector<Tensor> y;
  const auto forward = [&] {
    y.clear();
    const Part part = [&](const std::vector<Tensor>& x) { return std::vector{s.call.op(x)}; };
    for (int use = 0; use < how.uses; ++use) y.push_back(how.recomputed ? recompute(part, inputs)[0] : part(inputs)[0]);
  };
  Tape tape;
  forward();
  Outcome out{{y[0].shape, y[0].doubles()}, y[0].dtype, std::vector<Array>(inputs.size(), Array(Shape{0}))};

  const bool asked = std::any_of(inputs.begin(), inputs.end(), [](const Tensor& x) { return x.wants_gradient(); });
  DOCTEST_CHECK_MESSAGE(y[0].wants_gradient() == asked, "asked for gradients: ", asked,
                        ", recorded: ", y[0].wants_gradient());
  if (asked && y[0].wants_gradient()) {
    const Array r = projections(y[0].shape);
    const Tensor dy = to_tensor(r, y[0].dtype, how.device);
    if (how.replayed)
      replay(how.device, [&] {
        Tape captured;
        forward();
        captured.backward(project(y, dy));
      });
    else
      tape.backward(project(y, dy));
    out.y.values = y[0].doubles();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].wants_gradient()) continue;
      DOCTEST_CHECK_MESSAGE(!inputs[i].grad->fresh, "input ", i, " got no gradient");
      if (!inputs[i].grad->fresh) out.dx[i] = {inputs[i].shape, inputs[i].gradient().doubles()};
    }
    check_untouched(dy, r, "dy");
  }
  for (size_t i = 0; i < inputs.size(); ++i) check_untouched(inputs[i], s.inputs[how.same_input ? 0 : i], "an input");
  for (Device device : test::all_devices()) {
    backend(device).sync();
    backend(device).arena().check_red_zones();
  }
  return out;
}

}  // namespace tapedeck::op_test
