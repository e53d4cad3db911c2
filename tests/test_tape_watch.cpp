// TapeWatch: what it sees of a pass, plain and recomputed, and FiniteWatch, which names the first number that is not
// finite.
#include "engine/tape_watch.h"

#include <cmath>
#include <string>
#include <vector>

#include "engine/recompute.h"
#include "engine/scope.h"
#include "ops/ops.h"
#include "tests/leaves.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

namespace tapedeck {
namespace {

using namespace test;

struct Sight {
  std::string what, op, where;
  Values numbers;
  bool operator==(const Sight&) const = default;
};
struct Recorder : TapeWatch {
  void output(const char* op, const std::string& where, const Tensor& y) override {
    seen.push_back({"output", op, where, y.doubles()});
  }
  void gradient(const char* op, const std::string& where, const Tensor& dy) override {
    seen.push_back({"gradient", op, where, dy.doubles()});
  }
  std::vector<Sight> seen;
};

using Layer = std::function<Tensor(const Tensor&)>;
Tensor plainly(const Layer& layer, const Tensor& x) { return layer(x); }
Tensor again(const Layer& layer, const Tensor& x) { return recompute(layer, x); }
using Way = Tensor (*)(const Layer&, const Tensor&);

Tensor numbers(const Shape& shape, double phase) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.count(); ++i) values.push_back(std::sin(1.7 * static_cast<double>(i) + phase));
  return Tensor::from(values, shape).require_gradient();
}

// Two layers, one inside a part of a part, whose last products do not run again.
std::vector<Sight> seen_of(Way way) {
  const Tensor x = numbers({3, 4}, 0), w = numbers({4, 4}, 1), bias = numbers({4}, 2);
  const Recorder recorder;
  const Scope scope("model");
  const auto layer = [&](const Tensor& in) {
    const Scope inside("layer");
    return linear(exp(linear(in, w, bias, Activation::relu)), w, {});
  };
  Tape tape;
  const Tensor h = way(layer, x);
  const Tensor y = way([&](const Tensor& in) { return way(layer, layer(in)); }, h);
  tape.backward(sum(mul(y, h)));
  return recorder.seen;
}

// What FiniteWatch says of a layer on 1e-300, before and behind which nothing is wrong.
std::string first_of(Way way, const Layer& layer) {
  const Tensor x = leaf({1e-300, 2e-300});
  const FiniteWatch watch;
  Tape tape;
  Tensor y;
  {
    const Scope scope("model");
    y = way(layer, x);
  }
  tape.backward(sum(y));
  return watch.first();
}

}  // namespace

// Fault: tensors without numbers that tie a recomputed part together were shown, and so was the unwritten output of a
// product that does not run again.
TEST_CASE("who watches a tape sees the same ops and numbers, each once, whether a part is recomputed or not") {
  const std::vector<Sight> plain = seen_of(plainly), recomputed = seen_of(again);
  REQUIRE(plain.size() > 20);
  REQUIRE(recomputed.size() == plain.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    INFO(i << ": " << plain[i].what << " of " << plain[i].op << " at " << plain[i].where << ", recomputed "
           << recomputed[i].what << " of " << recomputed[i].op);
    CHECK(recomputed[i] == plain[i]);
  }
}

TEST_CASE("FiniteWatch names the first output or gradient that is not finite, recomputed or not") {
  for (const Way way : {plainly, again}) {
    const auto tame = [](const Tensor& in) { return scale(scale(in, 10), 0.1); };
    CHECK(first_of(way, tame) == "");
    const auto forward = [](const Tensor& in) { return exp(scale(log(scale(in, 0)), -1)); };  // log 0, then e^inf
    CHECK(first_of(way, forward) == "output of log at model");
    // 1e-300 · 1e200 · 1e200 · 1e200 is finite, the slope of it is not; the first of the three gets it.
    const auto backward = [](const Tensor& in) { return exp(scale(scale(exp(scale(in, 1e200)), 1e200), 1e-200)); };
    CHECK(first_of(way, backward) == "");
    const auto steep = [](const Tensor& in) { return scale(scale(scale(in, 1e200), 1e200), 1e150); };
    CHECK(first_of(way, steep) == "output gradient of scale at model");
  }
}

}  // namespace tapedeck
