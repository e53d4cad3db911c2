// One line per op: what it is held to is in op_test.h, the oracles are in naive.h. The last test fails when ops.h names
// an op that has no line here.
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "engine/launch.h"
#include "ops/unary.h"
#include "tests/op_test.h"
#include "tests/this_build.h"

namespace tapedeck {
using namespace tapedeck::op_test;

namespace {

using Axes = std::vector<int>;

// An op that takes a list, with its list written out.
Tensor concat(const Tensor& a, const Tensor& b, const Tensor& c, int axis) {
  return tapedeck::concat(std::vector<Tensor>{a, b, c}, axis);
}
Array concat_oracle(const Array& a, const Array& b, const Array& c, int axis) { return naive::concat({a, b, c}, axis); }

struct NoTensor {  // an empty Tensor, and what an oracle takes for one
  operator Tensor() const { return {}; }
  operator Array() const { return Array(); }
} const no_bias, no_positions;

Input ids(int64_t examples, int64_t tokens, int64_t v) { return Input{.extents = {examples, tokens}, .classes = v}; }

// Small enough that tanh and sigmoid do not saturate: there 1 − y² loses its digits in f32, rightly.
Input weight(int64_t out, int64_t in) { return input(out, in).range(-0.5, 0.5); }

// Which elements are dropped is the op's own choice, which it shows on ones; test_dropout.cpp judges the choice.
Array dropout_oracle(const Array& x, double p, const RandomKey& key) {
  const std::vector<double> shown = dropout(Tensor::full(x.shape, DType::f64, Device::cpu, 1), p, key).doubles();
  return naive::mul(x, naive::each(Array(x.shape, shown), [p](double m) { return m == 0 ? 0 : 1 / (1 - p); }));
}

// Compositions, which have no name in ops.h: one that reads x and the value between, one that reads y.
Tensor tanh_of_silu(const Tensor& x) { return unary("tanh_of_silu", x, Then{Silu{}, Tanh{}}); }
Array tanh_of_silu_oracle(const Array& x) { return naive::tanh(naive::silu(x)); }
Tensor relu_of_scale(const Tensor& x) { return unary("relu_of_scale", x, Then{Scale{1.7}, Relu{}}); }
Array relu_of_scale_oracle(const Array& x) { return naive::relu(naive::scale(x, 1.7)); }

}  // namespace

// ---- Element by element --------------------------------------------------------------------------------------------
OP_TEST(add, naive::add, input(3, ragged), input(3, ragged))
    .also(input(0, 5), input(0, 5))
    .rejects("[2, 3] and [3, 2] differ", input(2, 3), input(3, 2))
    .rejects("f32 and f64 do not mix", input(3), input(3).as(DType::f64))
    .rejects("one tensor is on", input(3), input(3).on_another_device());
OP_TEST(sub, naive::sub, input(3, ragged), input(3, ragged)).rejects("[3] and [4] differ", input(3), input(4));
OP_TEST(mul, naive::mul, input(3, ragged), input(3, ragged)).rejects("[3] and [4] differ", input(3), input(4));
OP_TEST(scale, naive::scale, input(3, ragged), -2.5).also(input(), 0.1);
OP_TEST(bias, naive::bias, input(3, ragged), input(ragged))
    .also(input(2, 3, 5), input(5))
    .also(input(3, 600), input(600))  // several strips of columns
    .also(input(0, 5), input(5))
    .rejects("x is [3, 4] and the bias [3]", input(3, 4), input(3))
    .rejects("x is [] and the bias [1]", input(), input(1))
    .rejects("x is f32 and the bias f64", input(3, 4), input(4).as(DType::f64))
    .rejects("move one with to()", input(3, 4), input(4).on_another_device());
OP_TEST(relu, naive::relu, input(3, ragged).away_from_0());
OP_TEST(gelu, naive::gelu, input(3, ragged).range(-4, 4));
OP_TEST(gelu_erf, naive::gelu_erf, input(3, ragged).range(-4, 4));
OP_TEST(silu, naive::silu, input(3, ragged).range(-6, 6));
OP_TEST(tanh, naive::tanh, input(3, ragged));
OP_TEST(sigmoid, naive::sigmoid, input(3, ragged));
OP_TEST(exp, naive::exp, input(3, ragged)).also(input(2, 17000));  // enough for several threads
OP_TEST(log, naive::log, input(3, ragged).range(0.2, 4));
OP_TEST(tanh_of_silu, tanh_of_silu_oracle, input(3, ragged));
OP_TEST(relu_of_scale, relu_of_scale_oracle, input(3, ragged).away_from_0());

// ---- Matrix products -----------------------------------------------------------------------------------------------
OP_TEST(matmul, naive::matmul, input(3, ragged), input(ragged, 5))
    .also(input(3, 5), input(5, ragged))
    .also(input(ragged, 5), input(5, 3))
    .also(input(2, 3, ragged), input(2, ragged, 5))
    .also(input(70, 90), input(90, 80))  // enough for several threads
    .also(input(0, 5), input(5, 3))
    .rejects("[3, 4] does not fit [5, 6]", input(3, 4), input(5, 6))
    .rejects("[2, 3, 4] does not fit [1, 4, 5]", input(2, 3, 4), input(1, 4, 5))
    .rejects("got [4] and [4, 2]", input(4), input(4, 2))
    .rejects("got f32 and f64", input(3, 4), input(4, 5).as(DType::f64))
    .rejects("move one with to()", input(3, 4), input(4, 5).on_another_device());
OP_TEST(linear, naive::linear, input(4, ragged), input(5, ragged), input(5), Activation::none)
    .also(input(4, 6), weight(ragged, 6), input(ragged), Activation::relu)
    .also(input(4, 6), weight(ragged, 6), input(ragged), Activation::gelu)
    .also(input(4, 6), weight(ragged, 6), input(ragged), Activation::gelu_erf)
    .also(input(4, 6), weight(ragged, 6), input(ragged), Activation::silu)
    .also(input(4, 6), weight(ragged, 6), input(ragged), Activation::tanh)
    .also(input(4, 6), weight(ragged, 6), input(ragged), Activation::sigmoid)
    .also(input(4, 6), weight(ragged, 6), no_bias, Activation::none)
    .also(input(4, 6), weight(ragged, 6), no_bias, Activation::relu)
    .also(input(4, 6), weight(ragged, 6), no_bias, Activation::gelu)
    .also(input(2, 3, 7), input(5, 7), input(5), Activation::relu)
    .also(input(7), input(5, 7), input(5), Activation::gelu)
    .also(input(3, 4), weight(600, 4), input(600), Activation::tanh)  // several strips of columns
    .also(input(0, 7), input(5, 7), input(5), Activation::gelu)
    .rejects("x ends in 7 but weight is [5, 6]", input(3, 7), input(5, 6), input(5), Activation::none)
    .rejects("needs a bias of 5 values, got [6]", input(3, 7), input(5, 7), input(6), Activation::none)
    .rejects("got [] and [5, 7]", input(), input(5, 7), input(5), Activation::none)
    .rejects("x is f32 but weight is f64", input(3, 7), input(5, 7).as(DType::f64), input(5), Activation::none)
    .rejects("move them with to()", input(3, 7), input(5, 7).on_another_device(), input(5), Activation::none)
    .rejects("move them with to()", input(3, 7), input(5, 7), input(5).on_another_device(), Activation::none);

// ---- Over the last axis --------------------------------------------------------------------------------------------
OP_TEST(softmax, naive::softmax, input(3, ragged).range(-9, 9))
    .also(input(2, 1500))  // a row for several warps
    .also(input(0, 5))
    .zero_gradient_at(1)  // softmax of one number is 1
    .rejects("needs an axis", input());
OP_TEST(log_softmax, naive::log_softmax, input(3, ragged).range(-9, 9))
    .also(input(2, 1500))
    .also(input(0, 5))
    .zero_gradient_at(1)
    .rejects("needs an axis", input());

// Rows of a single number are left out: their norm is the same for every number, or nearly, so that the gradient is
// what rounding leaves of 0.
OP_TEST(layer_norm, naive::layer_norm, input(ragged, 6), input(6), input(6), 1e-5)
    .also(input(3, 31), input(31), input(31), 1e-5)
    .also(input(3, 33), input(33), no_bias, 0.1)
    .also(input(3, 129), input(129), input(129), 1e-5)
    .also(input(2, 3, 5), input(5), input(5), 1e-5)
    .also(input(2, 1500), input(1500), input(1500), 1e-5)  // a row for several warps
    .also(input(600, 5), input(5), input(5), 1e-5)         // gradients of gain and bias in several chunks
    .also(input(0, 5), input(5), input(5), 1e-5)
    .rejects("x is [3, 4] and the gain [3]: make it [4]", input(3, 4), input(3), input(4), 1e-5)
    .rejects("x is [3, 4] and the bias [1, 4]", input(3, 4), input(4), input(1, 4), 1e-5)
    .rejects("needs an axis", input(), input(1), input(1), 1e-5)
    .rejects("got [3, 0]", input(3, 0), input(0), input(0), 1e-5)
    .rejects("x is f32 and the gain f64", input(3, 4), input(4).as(DType::f64), input(4), 1e-5)
    .rejects("move one with to()", input(3, 4), input(4), input(4).on_another_device(), 1e-5);

OP_TEST(rms_norm, naive::rms_norm, input(ragged, 6), input(6), 1e-5)
    .also(input(3, 31), input(31), 0.1)
    .also(input(3, 33), input(33), 1e-5)
    .also(input(2, 3, 129), input(129), 1e-5)
    .also(input(2, 1500), input(1500), 1e-5)
    .also(input(600, 5), input(5), 1e-5)
    .also(input(0, 5), input(5), 1e-5)
    .rejects("x is [3, 4] and the gain [3]: make it [4]", input(3, 4), input(3), 1e-5);

namespace both {  // ops of two outputs, which are tested as one tensor
const auto joined = [](const Residual& y) { return tapedeck::concat({y.sum, y.normed}, 0); };
const auto add_layer_norm = [](const auto&... x) { return joined(tapedeck::add_layer_norm(x...)); };
const auto add_rms_norm = [](const auto&... x) { return joined(tapedeck::add_rms_norm(x...)); };
Array add_layer_norm_oracle(const Array& x, const Array& branch, const Array& gain, const Array& b, double eps) {
  const Array sum = naive::add(x, branch);
  return naive::concat({sum, naive::layer_norm(sum, gain, b, eps)}, 0);
}
Array add_rms_norm_oracle(const Array& x, const Array& branch, const Array& gain, double eps) {
  const Array sum = naive::add(x, branch);
  return naive::concat({sum, naive::rms_norm(sum, gain, eps)}, 0);
}
OP_TEST(add_layer_norm, add_layer_norm_oracle, input(ragged, 6), input(ragged, 6), input(6), input(6), 1e-5)
    .also(input(3, 129), input(3, 129), input(129), no_bias, 1e-5)
    .also(input(2, 1500), input(2, 1500), input(1500), input(1500), 1e-5)
    .rejects("x is [3, 4] and the branch [4, 3]", input(3, 4), input(4, 3), input(4), input(4), 1e-5);
OP_TEST(add_rms_norm, add_rms_norm_oracle, input(ragged, 6), input(ragged, 6), input(6), 1e-5)
    .also(input(3, 129), input(3, 129), input(129), 1e-5)
    .rejects("x is [3, 4] and the branch [4, 3]", input(3, 4), input(4, 3), input(4), 1e-5);
}  // namespace both

// ---- Tokens --------------------------------------------------------------------------------------------------------
OP_TEST(embedding, naive::embedding, ids(4, 5, 7), input(7, ragged), no_positions, 0)
    .also(ids(3, ragged, 7), input(7, 5), input(131, 5), 0)
    .also(ids(3, 4, 7), input(7, ragged), input(9, ragged), 2)
    .also(ids(3, 200, 2), input(2, 3), no_positions, 0)       // whole chunks of one id; merges
    .also(ids(2, 6, 1000), input(1000, 3), no_positions, 0)   // most rows unused
    .also(labels(140, 3), input(3, 300), input(140, 300), 0)  // several strips of columns
    .also(ids(0, 5, 7), input(7, 3), input(5, 3), 0)
    .also(ids(3, 0, 7), input(7, 3), input(5, 3), 0)
    .rejects("got [7]", ids(2, 3, 7), input(7), no_positions, 0)
    .rejects("ids must be i32, got f32", input(2, 3), input(7, 4), no_positions, 0)
    .rejects("make them [P, 4]", ids(2, 3, 7), input(7, 4), input(9, 5), 0)
    .rejects("places 7…9 do not lie in the 9 of positions", ids(2, 3, 7), input(7, 4), input(9, 4), 7)
    .rejects("places -1…1 do not lie", ids(2, 3, 7), input(7, 4), input(9, 4), -1)
    .rejects("positions are f64", ids(2, 3, 7), input(7, 4), input(9, 4).as(DType::f64), 0)
    .rejects("move them with to()", ids(2, 3, 7), input(7, 4).on_another_device(), no_positions, 0);

// ---- Losses --------------------------------------------------------------------------------------------------------
OP_TEST(cross_entropy, naive::cross_entropy, input(6, ragged).range(-9, 9), labels(6, ragged))
    .also(input(6, 10), labels(6, 10).ignoring_every(2))
    .also(input(0, 10), labels(0, 10))
    .also(input(2, 1500), labels(2, 1500))  // a row for several warps
    .also(input(1500, 3), labels(1500, 3))  // a mean for several warps
    .zero_gradient_at(1)                    // the only class is always right
    .rejects("got [6, 10] and [5]", input(6, 10), labels(5, 10))
    .rejects("got [10] and [1]", input(10), labels(1, 10))
    .rejects("labels must be i32, got f32", input(6, 10), input(6))
    .rejects("have no class", input(6, 0), labels(6, 1))
    .rejects("move one with to()", input(6, 10), labels(6, 10).on_another_device());
OP_TEST(mse, naive::mse, input(3, ragged), input(3, ragged))
    .also(input(2, 5000), input(2, 5000))  // several chunks
    .rejects("x is [3, 4] but the target [3, 1]", input(3, 4), input(3, 1))
    .rejects("no elements", input(0, 4), input(0, 4));

// ---- Reductions ----------------------------------------------------------------------------------------------------
OP_TEST(sum, naive::sum, input(3, ragged)).also(input()).also(input(0, 5)).also(input(2, 17000));
OP_TEST(mean, naive::mean, input(3, ragged)).also(input()).also(input(2, 17000)).rejects("no elements", input(0, 5));

// ---- Moving numbers ------------------------------------------------------------------------------------------------
OP_TEST(reshape, naive::reshape, input(4, 6), Shape{2, 3, 4})
    .also(input(1), Shape{})
    .also(input(0, 5), Shape{3, 0})
    .rejects("[4, 6] has 24 elements but [5, 5] has 25", input(4, 6), Shape{5, 5});
OP_TEST(permute, naive::permute, input(3, ragged), Axes{1, 0})
    .also(input(2, 3, ragged), Axes{0, 2, 1})
    .also(input(2, 3, ragged), Axes{1, 0, 2})
    .also(input(2, 3, ragged), Axes{2, 0, 1})
    .also(input(2, 3, 4, 5), Axes{3, 1, 0, 2})
    .also(input(70, 90), Axes{1, 0})
    .also(input(4), Axes{0})
    .also(input(0, 5), Axes{1, 0})
    .rejects("axes [0, 0] do not order", input(2, 3), Axes{0, 0})
    .rejects("axes [0, 2] do not order", input(2, 3), Axes{0, 2})
    .rejects("axes [0] do not order", input(2, 3), Axes{0});
OP_TEST(concat, concat_oracle, input(3, ragged), input(3, 2), input(3, ragged), 1)
    .also(input(2, ragged), input(1, ragged), input(3, ragged), 0)
    .also(input(2, 3, 4), input(2, 1, 4), input(2, 2, 4), 1)
    .also(input(3, 2), input(3, 0), input(3, 4), 1)
    .rejects("axis 2 is not one of", input(3, 2), input(3, 2), input(3, 2), 2)
    .rejects("[4, 2] does not continue [3, 2]", input(3, 2), input(4, 2), input(3, 2), 1)
    .rejects("f64 on", input(3, 2), input(3, 2).as(DType::f64), input(3, 2), 1)
    .rejects("move it with to()", input(3, 2), input(3, 2), input(3, 2).on_another_device(), 1);
OP_TEST(slice, naive::slice, input(5, ragged), 0, 1, 4)
    .also(input(3, 129), 1, 31, 64)
    .also(input(2, 5, 3), 1, 0, 2)
    .also(input(2, 5, 3), 2, 2, 3)
    .also(input(4, 6), 0, 0, 4)  // all of it
    .also(input(4, 6), 1, 2, 2)  // nothing
    .rejects("axis 2 is not one of", input(4, 6), 2, 0, 1)
    .rejects("axis -1 is not one of", input(4, 6), -1, 0, 1)
    .rejects("2…7 does not lie in 0…6", input(4, 6), 1, 2, 7)
    .rejects("3…2 does not lie in 0…6", input(4, 6), 1, 3, 2);
OP_TEST(cast, naive::cast, input(3, ragged), DType::f64)
    .also(input(3, ragged), DType::f32)
    .rejects("would lose fractions", input(3), DType::i32);

// A step of central differences is too coarse for 16 bits, so these two have a test of their own.
TEST_CASE("cast rounds to 16 bits, and hands the gradient back as it is") {
  const std::vector<float> values = {1.0f, -0.1f, 3.14159274f, 1e-8f, 70000.0f};
  const auto check = [&]<class T>() {
    Tensor x = Tensor::from(values, {5});
    x.require_gradient();
    Tape tape;
    const Tensor y = cast(x, dtype_of<T>);
    for (size_t i = 0; i < values.size(); ++i)
      CHECK(y.doubles()[i] == static_cast<double>(static_cast<float>(T(values[i]))));
    tape.backward(sum(y), 0.5);
    CHECK(x.gradient().values<float>() == std::vector<float>(5, 0.5f));
  };
  check.operator()<Half>();
  check.operator()<Bfloat16>();
}

// ---- Random --------------------------------------------------------------------------------------------------------
OP_TEST(dropout, dropout_oracle, input(4, ragged), 0.5, RandomKey{7, 3, 1})
    .also(input(3, 129), 0.1, RandomKey{8, 3, 1})
    .also(input(3, 129), 0.0, RandomKey{7, 3, 1})
    .also(input(0, 5), 0.5, RandomKey{})
    .rejects("got 1", input(3), 1.0, RandomKey{})
    .rejects("got -0.1", input(3), -0.1, RandomKey{})
    .rejects("got nan", input(3), std::nan(""), RandomKey{});

TEST_CASE("every op of ops.h has a line here") {
  std::ifstream index(test::source_dir() + "/ops/ops.h");
  const std::regex declaration(R"(^(?:inline )?(?:Tensor|Residual) (\w+)\(.*)");
  int ops = 0;
  std::smatch match;
  for (std::string line; std::getline(index, line);) {
    if (!std::regex_match(line, match, declaration)) continue;
    ++ops;
    DOCTEST_CHECK_MESSAGE(op_tests().contains(match[1]), "no OP_TEST for ", match[1].str());
  }
  CHECK(ops >= 20);  // else the search itself is broken
}

}  // namespace tapedeck
