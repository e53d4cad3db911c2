// The kernels of ops/gradient_squares.h, in rows and arrays that take several warps, blocks and a rest.
#include "ops/gradient_squares.h"

#include <cmath>
#include <string>

#include "engine/device_value.h"
#include "ops/layers.h"
#include "tests/gpu.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

struct Net : Module {
  explicit Net(int64_t in) : Module("net"), first(*this, "first", in, 7, Activation::relu), last(*this, "last", 7, 3) {}
  Linear first, last;
};

struct Bench {
  Bench(Device device, DType dtype, int64_t in) : net(in), parameters(net, device, dtype, 5), state(device) {
    std::vector<double> values;
    for (int64_t i = 0; i < rows * in; ++i) values.push_back(static_cast<double>((7 * i + i * i / 3) % 19 - 9) / 8);
    x = cast(Tensor::from(values, {rows, in}), dtype).to(device);
  }
  void backward(const Tensor& input, ExampleSquares* squares = nullptr) {
    Tape tape;
    const Tensor loss = sum(net.last(net.first(input)));
    tape.backward(loss);
    if (squares) squares->add_to(state.ptr(), parameters.count());
  }
  double square_of_gradient() {
    parameters.complete_gradients();
    double total = 0;
    for (const double g : parameters.gradients().doubles()) total += g * g;
    return total;
  }
  static constexpr int64_t rows = 5;
  Net net;
  ParameterSet parameters;
  DeviceValue<StepState> state;
  Tensor x;
};

}  // namespace

TEST_CASE("squares of rows and of what a batch adds are those of the gradients, in short rows and in long ones") {
  for (const Device device : all_devices())
    for (const DType dtype : {DType::f64, DType::f32})
      for (const int64_t in : {3, 700, 1500}) {  // a warp a row, and 256 lanes; one chunk of 4,096, and several
        INFO("on " << std::string(name(device)) << " in " << std::string(name(dtype)) << ", " << in << " columns");
        Bench bench(device, dtype, in);
        double rows = 0;
        for (int64_t row = 0; row < Bench::rows; ++row) {
          bench.parameters.forget_gradients();
          bench.backward(slice(bench.x, 0, row, row + 1));
          rows += bench.square_of_gradient();
        }
        REQUIRE(rows > 0);
        bench.parameters.forget_gradients();
        {
          ExampleSquares squares(device, Bench::rows);
          bench.backward(bench.x, &squares);
        }
        // Sums of so many squares, one after the other.
        const double epsilon = 10 * eps(dtype) * std::sqrt(static_cast<double>(bench.parameters.count()));
        CHECK(bench.state.read().squares == doctest::Approx(rows).epsilon(epsilon));

        const BatchSquares batches(bench.parameters);
        bench.state.write({});
        double each = 0;
        for (int64_t row = 0; row < 2; ++row) {
          if (row == 0) bench.parameters.forget_gradients();
          bench.backward(slice(bench.x, 0, row, row + 1));
          batches.add_to(bench.state.ptr(), bench.parameters, row == 0);
        }
        for (int64_t row = 0; row < 2; ++row) {
          bench.parameters.forget_gradients();
          bench.backward(slice(bench.x, 0, row, row + 1));
          each += bench.square_of_gradient();
        }
        CHECK(bench.state.read().squares == doctest::Approx(each).epsilon(epsilon));
      }
}
