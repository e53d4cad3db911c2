// recompute(): gradients bitwise those without it, whatever the part takes and gives; what it keeps, what it computes
// again and what it does not.
#include "engine/recompute.h"

#include <string>

#include "engine/scope.h"
#include "ops/layers.h"
#include "tests/gpu.h"
#include "tests/leaves.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

namespace tapedeck {
namespace {

using namespace test;

Tensor numbers(const Shape& shape, double phase, Device device = Device::cpu, DType dtype = DType::f64) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.count(); ++i) values.push_back(std::sin(1.7 * static_cast<double>(i) + phase));
  Tensor x = cast(Tensor::from(values, shape), dtype).to(device);
  return x.require_gradient();
}

// The same numbers as x. Counts how often it computes and how often its backward runs.
struct Counts {
  int computed = 0, backward = 0;
};
Tensor counted(const Tensor& x, Counts& counts, bool keeps = false) {
  const Tensor y = Tensor::like(x);
  if (result_needed({&x})) {
    copy(y, x);
    ++counts.computed;
  }
  return record("counted", y, {&x}, [dx = want(x), &counts, y = keep(keeps ? y : Tensor())](const Tensor& dy) {
    ++counts.backward;
    dx.give(dy);
  });
}

using Run = std::function<std::vector<Tensor>(const Part&, const std::vector<Tensor>&)>;
const Run plainly = [](const Part& part, const std::vector<Tensor>& inputs) { return part(inputs); };
const Run again = [](const Part& part, const std::vector<Tensor>& inputs) { return recompute(part, inputs); };

// Whether `model`, run either way, leaves the same bits in the gradients of `leaves`.
template <class Model>
void check_same_gradients(const std::vector<Tensor>& leaves, const Model& model) {
  std::vector<std::vector<double>> gradients[2];
  for (const bool recomputed : {false, true}) {
    for (const Tensor& leaf : leaves) leaf.grad->fresh = true, leaf.grad->sum = {}, leaf.grad->uses = 0;
    Tape tape;
    tape.backward(model(recomputed ? again : plainly));
    for (const Tensor& leaf : leaves) gradients[recomputed].push_back(leaf.grad->fresh ? Values() : gradient(leaf));
  }
  size_t with_gradient = 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    INFO("leaf " << i);
    CHECK(gradients[0][i] == gradients[1][i]);
    with_gradient += std::any_of(gradients[0][i].begin(), gradients[0][i].end(), [](double d) { return d != 0; });
  }
  CHECK(with_gradient > 0);  // else equal ones prove nothing
}

TEST_CASE("recompute: a part with several inputs and outputs leaves the gradients that it leaves without") {
  // Fault: an output that nobody uses breaks backward, or one used twice counts once; sums gather in another order.
  for (const DType dtype : {DType::f32, DType::f16}) {
    const Tensor a = numbers({5, 7}, 0, Device::cpu, dtype), b = numbers({5, 7}, 1, Device::cpu, dtype),
                 w = numbers({7, 7}, 2, Device::cpu, dtype);
    const Part part = [w](const std::vector<Tensor>& in) {
      const Tensor h = linear(in[0], w, {}, Activation::gelu);
      const Tensor both = add(mul(h, in[1]), in[0]);  // in[0] has two users, w too
      return std::vector<Tensor>{both, linear(both, w, {}), sigmoid(h), in[1], both};
    };
    for (unsigned used = 1; used < 32; ++used) {
      INFO("outputs used, as bits: " << used << " in " << name(dtype));
      check_same_gradients({a, b, w}, [&](const Run& run) {
        const Tensor before = add(a, b);
        const std::vector<Tensor> out = run(part, {mul(before, a), b});
        Tensor loss = sum(mul(before, w.shape == before.shape ? w : before));
        for (size_t i = 0; i < 5; ++i)
          if (used >> i & 1) loss = add(loss, sum(mul(out[i], mul(before, out[i]))));
        return loss;
      });
    }
  }
}

TEST_CASE("recompute: keeps its inputs, and what is inside dies as soon as it has run") {
  const Tensor x = numbers({64, 64}, 0), w = numbers({64, 64}, 1);
  w.grad->given = true, w.grad->sum = Tensor::like(w);  // as a parameter has it
  const Part part = [w](const std::vector<Tensor>& in) {
    Tensor h = in[0];
    for (int i = 0; i < 5; ++i) h = linear(h, w, {}, Activation::gelu);
    return std::vector<Tensor>{h};
  };
  Arena& arena = backend(Device::cpu).arena();
  const size_t before = arena.use().bytes;
  Tape tape;
  const Tensor y = recompute(part, {x})[0];
  CHECK(tape.saved_bytes() == x.bytes());
  CHECK(arena.use().bytes == before + y.bytes());
  CHECK(std::string(tape.nodes()[0].op) == "recompute");
  const Tensor plain = part({y})[0];
  CHECK(tape.saved_bytes() == (1 + 2 * 5) * x.bytes());  // y and z of each, of the last z alone: y is another's
}

TEST_CASE("recompute: runs a part once more, but not what comes only out of it") {
  Counts inner, last, behind;
  const Tensor x = numbers({3}, 0);
  Tape tape;
  const Tensor y = recompute(
      [&](const Tensor& in) {
        const Tensor h = counted(in, inner);
        return counted(counted(exp(h), last), behind);
      },
      x);
  CHECK((inner.computed == 1 && last.computed == 1 && behind.computed == 1));
  tape.backward(sum(y));
  CHECK((inner.computed == 2 && inner.backward == 1));  // exp's backward reads y, which is made of it
  CHECK((last.computed == 1 && behind.computed == 1));
  CHECK((last.backward == 1 && behind.backward == 1));
}

TEST_CASE("recompute: an op whose output is read later in the part, or kept by itself, computes it again") {
  Counts kept, read;
  const Tensor x = numbers({3}, 0), frozen = Tensor::full({3}, DType::f64, Device::cpu, 2);
  Tape tape;
  const Tensor y = recompute(
      [&](const Tensor& in) {
        const Tensor constant = linear(reshape(frozen, {1, 3}), Tensor::full({3, 3}, DType::f64, Device::cpu, 1), {});
        const Tensor h = mul(counted(in, read), reshape(constant, {3}));  // a product that nothing records
        return counted(h, kept, true);
      },
      x);
  tape.backward(sum(y));
  CHECK((read.computed == 2 && kept.computed == 2));
  CHECK(gradient(x) == Values{6, 6, 6});
}

TEST_CASE("recompute: does nothing where nothing is recorded or wants a gradient") {
  Counts counts;
  const auto part = [&](const Tensor& in) { return counted(in, counts); };
  const Tensor x = numbers({3}, 0), constant = Tensor::full({3}, DType::f64, Device::cpu, 2);
  CHECK_FALSE(recompute(part, x).wants_gradient());
  Tape tape;
  CHECK_FALSE(recompute(part, constant).wants_gradient());
  CHECK(tape.nodes().empty());
  CHECK(recompute([](const Tensor& in) { return in; }, x).grad == x.grad);
  CHECK(tape.nodes().empty());
}

TEST_CASE("recompute: a part whose outputs reach no loss does not run again") {
  Counts counts;
  const Tensor x = numbers({3}, 0);
  Tape tape;
  recompute([&](const Tensor& in) { return counted(exp(in), counts); }, x);
  tape.backward(sum(x));
  CHECK((counts.computed == 1 && counts.backward == 0));
}

TEST_CASE("recompute: parts inside parts") {
  const Tensor x = numbers({4, 6}, 0), w = numbers({6, 6}, 1);
  const auto layer = [w](const Tensor& in) { return add(linear(in, w, {}, Activation::relu), in); };
  check_same_gradients({x, w}, [&](const Run& run) {
    const Part inner = [layer](const std::vector<Tensor>& in) { return std::vector{layer(layer(in[0]))}; };
    const Part outer = [&run, inner, layer](const std::vector<Tensor>& in) {
      const Tensor h = run(inner, {layer(in[0])})[0];
      return std::vector{layer(run(inner, {h})[0]), h};
    };
    const std::vector<Tensor> y = run(outer, {x});
    return sum(mul(y[0], y[1]));
  });
}

// Fault: a mask is drawn anew when the part runs again, and gradients belong to another sample.
TEST_CASE("recompute: dropout has the mask that it had") {
  for (const Device device : all_devices()) {
    const Tensor x = numbers({33, 9}, 0, device, DType::f32), w = numbers({9, 9}, 1, device, DType::f32);
    const Part part = [w](const std::vector<Tensor>& in) {
      return std::vector{dropout(linear(dropout(in[0], 0.5, {3, 1, 7}), w, {}, Activation::gelu), 0.5, {3, 1, 8})};
    };
    check_same_gradients({x, w}, [&](const Run& run) {
      const Tensor y = run(part, {x})[0];
      return sum(mul(y, y));
    });
  }
}

// Fault: a part hides from the next product that its output comes out of an activation, and the gradient takes
// another way through it than without: other bits where sums are rounded to 16.
TEST_CASE("recompute: the next product still takes the gradient through the activation that ends a part") {
  for (const Device device : all_devices())
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const Activation activation : {Activation::relu, Activation::gelu}) {
        const Tensor x = numbers({33, 8}, 0, device, dtype), w = numbers({8, 8}, 1, device, dtype),
                     bias = numbers({8}, 2, device, dtype);
        const Part layer = [=](const std::vector<Tensor>& in) {
          return std::vector{linear(in[0], w, bias, activation)};
        };
        INFO(name(device) << " " << name(dtype));
        check_same_gradients({x, w, bias}, [&](const Run& run) {
          const Tensor h = run(layer, {run(layer, {x})[0]})[0];
          return sum(linear(h, w, {}));
        });
        check_same_gradients({x, w, bias}, [&](const Run& run) {
          const Tensor h = run(layer, {x})[0];
          return sum(mul(linear(h, w, {}), h));  // h has two users
        });
        check_same_gradients({x, w, bias}, [&](const Run& run) {
          const Part both = [&](const std::vector<Tensor>& in) {
            const Tensor h = linear(in[0], w, bias, activation);
            return std::vector{linear(h, w, {}), h};
          };
          const std::vector<Tensor> y = run(both, {x});
          return sum(mul(y[0], y[1]));  // two users of h, one inside and one outside
        });
      }
}

TEST_CASE("recompute: a recipe's value stands for the one that was not kept, bit by bit") {
  for (const Device device : all_devices())
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      const Tensor x = numbers({33, 40}, 0, device, dtype), branch = numbers({33, 40}, 1, device, dtype),
                   gain = numbers({40}, 2, device, dtype), bias = numbers({40}, 3, device, dtype),
                   w = numbers({40, 40}, 4, device, dtype);
      for (const Tensor& parameter : {gain, bias, w}) parameter.grad->given = true;
      size_t saved[2];
      std::vector<std::vector<double>> gradients[2];
      const std::vector<Tensor> leaves = {x, branch, gain, bias, w};
      for (const bool on : {false, true}) {
        for (const Tensor& leaf : leaves)
          leaf.grad->fresh = true, leaf.grad->sum = leaf.grad->given ? Tensor::like(leaf) : Tensor();
        const Remaking remaking(on);
        Tape tape;
        Tensor h = add_layer_norm(x, branch, gain, bias).normed;
        h = linear(linear(h, w, bias, Activation::gelu), w, bias, Activation::silu);
        h = linear(rms_norm(linear(h, w, {}), gain), w, {});
        const Tensor loss = sum(layer_norm(h, gain, bias));
        saved[on] = tape.saved_bytes();
        tape.backward(loss);
        for (const Tensor& leaf : leaves) gradients[on].push_back(gradient(leaf));
      }
      INFO(name(device) << " " << name(dtype));
      CHECK(gradients[0] == gradients[1]);
      // Two norms, silu, and gelu where a product's epilogue makes what its own kernel would.
      const size_t remade = device == Device::cpu && size_of(dtype) > 2 ? 4 : 3;
      CHECK(saved[1] == saved[0] - remade * x.bytes());
    }
}

struct Two : Module {
  Two() : Module("two"), first(*this, "first", 4, 4), second(*this, "second", 4, 4) {}
  Linear first, second;
};

TEST_CASE("recompute: a part that runs again has its layers' paths, in nodes and in errors") {
  Two model;
  const ParameterSet parameters(model, Device::cpu, DType::f64, 1);
  std::vector<std::string> seen;
  const Tensor x = numbers({2, 4}, 0);
  Tape tape;
  Tensor y;
  {
    const Scope scope("two");
    y = recompute(
        [&](const Tensor& in) {
          const Tensor h = model.second(model.first(in));
          seen.push_back(Scope::path());
          if (seen.size() == 2) model.second(reshape(h, {8, 1}));
          return h;
        },
        x);
  }
  CHECK(tape.nodes()[0].where == "two");
  CHECK_THROWS_WITH_AS(tape.backward(sum(y)), doctest::Contains("two.second"), Error);
  CHECK(seen == std::vector<std::string>{"two", "two"});
  CHECK(Scope::path() == "");
  CHECK_FALSE(recording() == false);  // the tape of this thread still records
}

TEST_CASE("recompute: a part has its path too where the next layer's product makes it run again") {
  const Tensor x = numbers({2, 4}, 0), w = numbers({4, 4}, 1), bias = numbers({4}, 2);
  std::vector<std::string> seen;
  Tape tape;
  Tensor h;
  {
    const Scope scope("below");
    h = recompute(
        [&](const Tensor& in) {
          seen.push_back(Scope::path());
          return linear(in, w, bias, Activation::gelu);
        },
        x);
  }
  {
    const Scope scope("above");
    h = linear(h, w, {});
  }
  tape.backward(sum(h));
  CHECK(seen == std::vector<std::string>{"below", "below"});
}

TEST_CASE("recompute: a part that does something else when it runs again is refused") {
  int calls = 0;
  const Tensor x = numbers({3}, 0);
  Tape tape;
  const Tensor y = recompute([&](const Tensor& in) { return calls++ == 0 ? exp(in) : exp(exp(in)); }, x);
  CHECK_THROWS_WITH_AS(tape.backward(sum(y)), doctest::Contains("the part recorded 1 ops when it ran first and 2 now"),
                       Error);
}

}  // namespace
}  // namespace tapedeck
