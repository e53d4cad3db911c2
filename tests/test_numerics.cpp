// Numerical faults that other libraries shipped: each test states the fault and the right outcome. All run on both
// devices, in f32 and f64.
#include <cmath>
#include <string>
#include <vector>

#include "ops/ops.h"
#include "tests/everywhere.h"

using namespace tapedeck;
using test::everywhere;
using test::tensor;

namespace {

// A few roundings, relative to numbers of the size of 1.
void check_near(const Tensor& got, const std::vector<double>& expected) {
  const std::vector<double> values = got.doubles();
  REQUIRE(values.size() == expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    CHECK(std::abs(values[i] - expected[i]) <= 8 * eps(got.dtype) * std::max(1.0, std::abs(expected[i])));
}

// d cross_entropy / d logits, and the loss
struct Loss {
  Tensor value, gradient;
};
Loss cross_entropy_of(Tensor logits, const std::vector<int32_t>& labels) {
  logits.require_gradient();
  Tape tape;
  const Tensor loss =
      cross_entropy(logits, Tensor::from(labels, {static_cast<int64_t>(labels.size())}, logits.device()));
  tape.backward(loss);
  return {loss, logits.gradient()};
}

const std::vector<double> four_rows = {1, 2, 3, -1, 0.5, 2, 0, 0, 1, 4, -2, 1};

}  // namespace

// Fault: softmax of ordinary large logits was inf / inf, because nothing was subtracted before exp.
TEST_CASE("softmax of large logits is finite and right") {
  everywhere([](Device device, DType dtype) {
    const Tensor x = tensor({7999.99, 8000, 2, 1}, {4}, device, dtype);
    const double gap = x.doubles()[1] - x.doubles()[0];  // 0.01, as the type stores it
    check_near(softmax(x), {1 / (1 + std::exp(gap)), 1 / (1 + std::exp(-gap)), 0, 0});
    check_near(log_softmax(tensor({1000, 0}, {2}, device, dtype)), {0, -1000});
  });
}

// Fault: the running maximum of softmax started at 0, so that rows of negative logits underflowed to 0 / 0.
TEST_CASE("log_softmax of very negative logits is finite and right") {
  everywhere([](Device device, DType dtype) {
    const double p = std::log1p(std::exp(-1));
    check_near(log_softmax(tensor({-1000, -1001}, {2}, device, dtype)), {-p, -1 - p});
    check_near(softmax(tensor({-1000, -1001}, {2}, device, dtype)), {std::exp(-p), std::exp(-1 - p)});
  });
}

// Fault: log-sum-exp minus logit was taken between two large numbers, which costs a loss its digits.
TEST_CASE("cross_entropy does not change when all logits of a row are moved") {
  everywhere([](Device device, DType dtype) {
    const std::vector<int32_t> labels = {2, 0, 1, 1};
    const Loss plain = cross_entropy_of(tensor(four_rows, {4, 3}, device, dtype), labels);
    for (const double shift : {8192.0, -8192.0}) {  // exact in f32 beside halves
      INFO("shift " << shift);
      std::vector<double> moved = four_rows;
      for (double& value : moved) value += shift;
      const Loss shifted = cross_entropy_of(tensor(moved, {4, 3}, device, dtype), labels);
      check_near(shifted.value, plain.value.doubles());
      check_near(shifted.gradient, plain.gradient.doubles());
    }
  });
}

// Fault: the mean over the counted labels was 0 / 0 when every label of a batch was ignored, and NaN went to all
// weights.
TEST_CASE("cross_entropy with every label ignored is 0 and so are its gradients") {
  everywhere([](Device device, DType dtype) {
    const std::vector<int32_t> none(4, ignored_label);
    const Loss loss = cross_entropy_of(tensor(four_rows, {4, 3}, device, dtype), none);
    CHECK(loss.value.item() == 0);
    CHECK(loss.gradient.doubles() == std::vector<double>(12, 0));

    std::vector<double> overflown = four_rows;  // 0 · NaN is NaN: an ignored row must be left out, not multiplied out
    overflown[4] = INFINITY;
    overflown[7] = NAN;
    const Loss still = cross_entropy_of(tensor(overflown, {4, 3}, device, dtype), none);
    CHECK(still.value.item() == 0);
    CHECK(still.gradient.doubles() == std::vector<double>(12, 0));
  });
}

// Fault: ignored labels counted in the mean, or left a gradient in their rows.
TEST_CASE("cross_entropy with half the labels ignored is the mean over the other half") {
  everywhere([](Device device, DType dtype) {
    const Loss half = cross_entropy_of(tensor(four_rows, {4, 3}, device, dtype), {ignored_label, 0, ignored_label, 1});
    const std::vector<double> counted_rows = {-1, 0.5, 2, 4, -2, 1};
    const Loss counted = cross_entropy_of(tensor(counted_rows, {2, 3}, device, dtype), {0, 1});
    check_near(half.value, counted.value.doubles());
    std::vector<double> expected(12, 0);
    for (size_t j = 0; j < 3; ++j) {
      expected[3 + j] = counted.gradient.doubles()[j];
      expected[9 + j] = counted.gradient.doubles()[3 + j];
    }
    check_near(half.gradient, expected);
    for (size_t j = 0; j < 3; ++j) CHECK(half.gradient.doubles()[j] == 0);
  });
}

// Fault: a label outside the classes was read out of bounds, gave a silent number, and on a GPU spoiled all later
// calls.
TEST_CASE("cross_entropy refuses a label outside the classes with row, value and class count, or is NaN") {
  everywhere([](Device device, DType dtype) {
    const Tensor logits = Tensor::full({12, 10}, dtype, device, 0);
    for (const int32_t wrong : {10, -4, -2, INT32_MAX, INT32_MIN}) {
      std::vector<int32_t> labels = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1};
      labels[10] = wrong;
      if (device != Device::cpu) {  // whose labels the host cannot see without waiting
        CHECK(std::isnan(cross_entropy(logits, Tensor::from(labels, {12}, device)).item()));
        continue;
      }
      std::string message = "nothing";
      try {
        cross_entropy(logits, Tensor::from(labels, {12}, device));
      } catch (const Error& error) {
        message = error.what();
      }
      CHECK(message.find("label " + std::to_string(wrong) + " at row 10") != std::string::npos);
      CHECK(message.find("10 classes") != std::string::npos);
    }
    const std::vector<int32_t> good = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1};
    check_near(cross_entropy(logits, Tensor::from(good, {12}, device)), {std::log(10)});  // and later calls are well
  });
}

// Fault: the means of micro-batches of 11 and 101 counted labels were averaged as if they weighed the same: 1.5,
// not 1.098.
TEST_CASE("micro-batches weighed by their counted labels give the loss and gradient of the whole batch") {
  everywhere([](Device device, DType dtype) {
    // Two classes, logits (0, d) and label 0: the loss of a row is log(1 + e^d).
    const double two = std::log(std::exp(2) - 1), one = std::log(std::exp(1) - 1);
    const auto weight = [&] { return tensor({0, 1}, {2, 1}, device, dtype).require_gradient(); };
    const auto part = [&](int64_t counted, int64_t ignored, double d, std::vector<double>& x, std::vector<int32_t>& y) {
      x.insert(x.end(), static_cast<size_t>(counted + ignored), d);
      y.insert(y.end(), static_cast<size_t>(counted), 0);
      y.insert(y.end(), static_cast<size_t>(ignored), ignored_label);
    };
    const auto backward = [&](const Tensor& w, const std::vector<double>& x, const std::vector<int32_t>& y,
                              double seed) {
      const auto n = static_cast<int64_t>(y.size());
      Tape tape;
      const Tensor logits = linear(tensor(x, {n, 1}, device, dtype), w, {});
      const Tensor loss = cross_entropy(logits, Tensor::from(y, {n}, device));
      tape.backward(loss, seed);
      return loss.item();
    };
    std::vector<double> xa, xb, x;
    std::vector<int32_t> ya, yb, y;
    part(11, 5, two, xa, ya);
    part(101, 0, one, xb, yb);
    part(11, 5, two, x, y);
    part(101, 0, one, x, y);

    const Tensor whole = weight(), parts = weight();
    const double loss = backward(whole, x, y, 1);
    const double accumulated =
        backward(parts, xa, ya, 11.0 / 112) * 11 / 112 + backward(parts, xb, yb, 101.0 / 112) * 101 / 112;
    CHECK(loss == doctest::Approx(123.0 / 112).epsilon(1e-6));
    CHECK(accumulated == doctest::Approx(123.0 / 112).epsilon(1e-6));
    check_near(parts.gradient(), whole.gradient().doubles());
    CHECK(std::abs(whole.gradient().doubles()[0]) > 0.1);  // else the line above proves nothing

    const Tensor same = weight(), alone = weight();  // a micro-batch of ignored labels only adds nothing
    backward(same, {two, two}, {ignored_label, ignored_label}, 0);
    backward(same, xb, yb, 1);
    backward(alone, xb, yb, 1);
    CHECK(same.gradient().doubles() == alone.gradient().doubles());
  });
}
