// Where gradients gather and values are kept: nothing counts twice, and no slot ever changes another.
#include <cmath>
#include <vector>

#include "engine/tape.h"
#include "ops/ops.h"
#include "tests/leaves.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

namespace tapedeck {
namespace {

using namespace test;

TEST_CASE("tape: two passes on two tapes add up in the leaf, and only there") {
  // Fault: a second backward counts the intermediate gradients of the first, and the leaf gets 96 instead of 64.
  Tensor x = number(2);
  const auto pass = [&] {
    Tape tape;
    const Tensor y = mul(x, x);
    tape.backward(mul(y, y));  // d x⁴ / dx = 4 x³ = 32
  };
  pass();
  CHECK_EQ(x.gradient().item(), 32);
  pass();
  CHECK_EQ(x.gradient().item(), 64);
  x.grad->fresh = true;
  CHECK_THROWS_AS(x.gradient(), Error);
  pass();
  CHECK_EQ(x.gradient().item(), 32);
}

TEST_CASE("tape: what the tape keeps cannot be filled or copied over, neither through a view") {
  // Fault: a saved value is changed between forward and backward, and the gradient is wrong without an error.
  Tensor a = leaf({1, 2});
  const Values expected = {std::exp(1.0), std::exp(2.0)};
  for (bool by_view : {false, true}) {
    a.require_gradient();
    Tape tape;
    const Tensor b = exp(a);
    const Tensor target = by_view ? reshape(b, {2, 1}) : b;
    const Tensor other = Tensor::full(target.shape, DType::f64, Device::cpu, 1);
    CHECK_THROWS_WITH_AS(fill(target, 9), doctest::Contains("kept by a tape for its backward pass"), Error);
    CHECK_THROWS_WITH_AS(copy(target, other), doctest::Contains("kept by a tape for its backward pass"), Error);
    tape.backward(sum(b));
    for (int i = 0; i < 2; ++i) CHECK_EQ(gradient(a)[i], doctest::Approx(expected[i]).epsilon(1e-14));
    CHECK_NOTHROW(fill(target, 9));  // the node is gone, and with it the reason
  }
  Tape tape;
  const Tensor sums = add(a, a);  // keeps nothing
  CHECK_NOTHROW(fill(sums, 9));
  const Tensor kept = exp(a);
  CHECK_NOTHROW(copy(sums, kept));
}

TEST_CASE("tape: a tape that dies without backward lets go of what it kept") {
  Tensor a = leaf({1, 2});
  Tensor b;
  {
    Tape tape;
    b = exp(a);
    CHECK_EQ(tape.saved_bytes(), 16u);
    CHECK_THROWS_AS(fill(b, 0), Error);
  }
  CHECK_NOTHROW(fill(b, 0));
}

TEST_CASE("tape: a leaf used several times gets the sum of its gradients") {
  Tensor x = leaf({1, -2, 3});
  Tape tape;
  tape.backward(sum(add(mul(x, x), add(x, scale(x, 5)))));  // x² + 6x
  CHECK_EQ(gradient(x), Values{8, 2, 12});
}

TEST_CASE("tape: slots that share one gradient's memory never change each other") {
  // Fault: a + b hands one dy to both; a later writer adds to a's slot in place, and b's gradient changes with it.
  SUBCASE("the later writer reaches a, then b") {
    for (bool a_first : {true, false}) {
      Tensor a = leaf({1, 2}), b = leaf({3, 4});
      Tape tape;
      const Tensor more = a_first ? scale(a, 10) : scale(b, 10);  // runs after add's backward
      tape.backward(sum(add(add(a, b), more)));
      CHECK_EQ(gradient(a), a_first ? Values{11, 11} : Values{1, 1});
      CHECK_EQ(gradient(b), a_first ? Values{1, 1} : Values{11, 11});
    }
  }
  SUBCASE("the sum itself goes on to others") {
    Tensor a = leaf({1, 2}), b = leaf({3, 4});
    Tape tape;
    const Tensor c = add(a, b);
    const Tensor d = add(c, a);
    tape.backward(sum(add(add(c, d), mul(c, d))));  // c + d + c·d;  d/dc = 1 + d, d/dd = 1 + c, d = c + a
    const Values dc = {2 + 5 + 4, 2 + 8 + 6}, dd = {1 + 4, 1 + 6};
    CHECK_EQ(gradient(b), dc);
    CHECK_EQ(gradient(a), Values{dc[0] + dd[0], dc[1] + dd[1]});
  }
  SUBCASE("reshape chains") {
    Tensor a = leaf({1, 2, 3, 4});
    Tape tape;
    const Tensor r = reshape(reshape(a, {2, 2}), {4});
    tape.backward(sum(add(add(r, a), add(reshape(reshape(a, {4, 1}), {4}), scale(r, 2)))));
    CHECK_EQ(gradient(a), Values{5, 5, 5, 5});
  }
  SUBCASE("a gradient in somebody's hands stays as it is") {
    Tensor a = leaf({1, 2}), b = leaf({3, 4});
    const auto pass = [&] {
      Tape tape;
      tape.backward(sum(add(a, mul(a, b))));
    };
    pass();
    const Tensor first = a.gradient();
    pass();
    CHECK_EQ(first.doubles(), Values{4, 5});
    CHECK_EQ(gradient(a), Values{8, 10});
    CHECK_EQ(gradient(b), Values{2, 4});
  }
}

TEST_CASE("tape: a value and its reshapes share memory, but not a slot") {
  Tensor x = leaf({1, 2, 3, 4});
  Tape tape;
  const Tensor y = scale(x, 3);
  const Tensor z = reshape(y, {2, 2});
  CHECK_EQ(y.data.begin(), z.data.begin());
  CHECK_NE(y.grad, z.grad);
  tape.backward(sum(mul(z, z)));
  CHECK_EQ(gradient(x), Values{18, 36, 54, 72});
}

TEST_CASE("tape: a slot with memory given beforehand is written there and nowhere else") {
  // Fault: the first writer replaces a parameter's segment by its own memory, and the optimizer reads the old one.
  const Tensor flat = Tensor::full({6}, DType::f64, Device::cpu, 7);
  std::vector<Tensor> leaves = {leaf({1, 2}), leaf({3, 4})};
  for (int i = 0; i < 2; ++i) {
    leaves[i].grad->given = true;
    leaves[i].grad->sum = Tensor::empty({2}, DType::f64, Device::cpu);
    leaves[i].grad->sum.data = flat.data.slice(static_cast<size_t>(i + 1) * 16, 16);
  }
  const auto pass = [&] {
    Tape tape;
    tape.backward(sum(add(leaves[0], add(leaves[1], mul(leaves[0], leaves[1])))));
  };
  pass();
  CHECK_EQ(flat.doubles(), Values{7, 7, 4, 5, 2, 3});
  pass();
  CHECK_EQ(flat.doubles(), Values{7, 7, 8, 10, 4, 6});
  for (Tensor& x : leaves) x.grad->fresh = true;
  pass();
  CHECK_EQ(flat.doubles(), Values{7, 7, 4, 5, 2, 3});
  CHECK_EQ(leaves[0].gradient().data.begin(), static_cast<char*>(flat.data.begin()) + 16);
}

TEST_CASE("tape: an intermediate value keeps no gradient, and reading it is an error") {
  // Fault: the slot claims to hold a gradient whose memory is gone, and its reader follows a null pointer.
  Tensor x = number(2);
  Tensor y;
  {
    Tape tape;
    y = mul(x, x);
    tape.backward(mul(y, y));
  }
  CHECK_THROWS_WITH_AS(y.gradient(), doctest::Contains("only leaves keep theirs"), Error);
  Tape again;  // on another tape it is a leaf like any other
  again.backward(mul(y, y));
  CHECK_EQ(y.gradient().item(), 8);
  CHECK_EQ(x.gradient().item(), 32);
}

}  // namespace
}  // namespace tapedeck
