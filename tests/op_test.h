// OP_TEST(op, oracle, arguments…): one line that holds an op to everything we promise of ops.
//
//   OP_TEST(softmax, naive::softmax, input(3, ragged).range(-9, 9))
//       .also(input(2, 1500))                         the same op and oracle on other arguments
//       .zero_gradient_at(1)                          the ragged extent for which the gradient is 0 by nature
//       .rejects("needs an axis", input());           an Error that names the op and says this
//
// The arguments are the op's own. Where one is input(…) or labels(…), the op gets a tensor of such numbers and the
// oracle the same numbers as an Array; everything else (a factor, an axis, a key) reaches both as it is. The extent
// `ragged` takes each value of ragged_extents in turn, wherever it stands. Each line checks, for f64 and f32, and for
// f16 and bf16 all but 3 at one extent:
//   1  the value against the oracle, and that nobody wrote to the inputs
//   2  the gradient: in f64 against central differences of Σ r ∘ y with a fixed r, and the others against f64; one that
//   is
//      zero everywhere fails, because it proves nothing
//   3  fan-out: two uses of the inputs double the gradient; whatever subset of inputs wants one gets the same gradient
//   4  cpu equals emulated, whose lanes run forward and in reverse, in value and gradient; and cuda where there is one;
//      on both a captured pass that is replayed gives the same bits
//   5  memory: fresh memory is NaN, so an element left unwritten shows; nothing writes past its end or stays alive
//   6  a second run gives the same bits, and so does one inside recompute(), captured too
//   7  bad arguments are refused with the words of rejects(), on every device
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/naive.h"

#undef CHECK  // the engine's, which throws; from here on it is doctest's
#include <doctest/doctest.h>

namespace tapedeck::op_test {

using naive::Array;

inline constexpr int64_t ragged = -1;
inline constexpr int64_t ragged_extents[] = {1, 31, 33, 129};  // around a warp, and one past a few vectors

struct Input {  // a tensor to be made: uniform numbers in [low, high], the same in every run
  std::vector<int64_t> extents;
  double low = -2, high = 2, gap = 0;
  std::optional<DType> only = {};  // this type instead of the one under test
  int64_t classes = 0;             // not 0: labels, i32 below this
  int64_t ignored_every = 0;       // not 0: every so many-th label is ignored_label
  bool elsewhere = false;          // on another device than the rest: for rejects()

  Input range(double lowest, double highest) const;
  Input away_from_0() const;  // no nearer than 0.1: central differences must not straddle a kink
  Input as(DType dtype) const;
  Input on_another_device() const;
  Input ignoring_every(int64_t step) const;
};

template <class... Extents>
Input input(Extents... extents) {
  return Input{.extents = {extents...}};
}
Input labels(int64_t rows, int64_t classes);

// One call of an op, and of its oracle, as functions of the inputs alone: the other arguments are inside.
struct Case {
  std::vector<Input> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> op;
  std::function<Array(const std::vector<Array>&)> oracle;
};
struct Rejection {
  std::string words;
  Case call;
};
struct OpTest {
  std::vector<Case> cases;
  std::vector<Rejection> rejections;
  std::optional<int64_t> zero_gradient_at;
};

std::map<std::string, OpTest>& op_tests();     // by the op's name
void run_op_test(const std::string& op_name);  // all its cases and rejections; reports through doctest

// Calls f(arguments…) with the k-th Input among them replaced by values[k].
template <class F, class Value, class... Arguments>
auto call(const F& f, const std::vector<Value>& values, const Arguments&... arguments) {
  size_t next = 0;
  const auto substitute = [&]<class A>(const A& argument) -> const auto& {
    if constexpr (std::is_same_v<A, Input>)
      return values[next++];
    else
      return argument;
  };
  return std::apply(f, std::tuple<decltype(substitute(arguments))...>{substitute(arguments)...});  // { }: left to right
}

template <class Op, class Oracle>
class Line {
 public:
  Line(const char* name, Op op, Oracle oracle) : test_(op_tests()[name]), op_(op), oracle_(oracle) {}

  template <class... Arguments>
  Line& also(const Arguments&... arguments) {
    Case c = without_oracle(arguments...);
    c.oracle = [oracle = oracle_, arguments...](const std::vector<Array>& x) { return call(oracle, x, arguments...); };
    test_.cases.push_back(c);
    return *this;
  }
  template <class... Arguments>
  Line& rejects(const char* words, const Arguments&... arguments) {
    test_.rejections.push_back({words, without_oracle(arguments...)});
    return *this;
  }
  Line& zero_gradient_at(int64_t ragged_extent) {
    test_.zero_gradient_at = ragged_extent;
    return *this;
  }

 private:
  template <class... Arguments>
  Case without_oracle(const Arguments&... arguments) const {
    Case c;
    const auto note = [&]<class A>(const A& argument) {
      if constexpr (std::is_same_v<A, Input>) c.inputs.push_back(argument);
    };
    (note(arguments), ...);
    c.op = [op = op_, arguments...](const std::vector<Tensor>& x) { return call(op, x, arguments...); };
    return c;
  }
  OpTest& test_;
  Op op_;
  Oracle oracle_;
};

}  // namespace tapedeck::op_test

#define OP_TEST(op, oracle, ...)                                          \
  DOCTEST_TEST_CASE("op " #op) { ::tapedeck::op_test::run_op_test(#op); } \
  [[maybe_unused]] static const auto DOCTEST_ANONYMOUS(op_test_line_) =   \
      ::tapedeck::op_test::Line(                                          \
          #op, [](const auto&... x) { return op(x...); }, oracle)         \
          .also(__VA_ARGS__)
