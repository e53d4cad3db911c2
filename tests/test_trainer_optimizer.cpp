// Optimizers against a plain loop in double, schedules at the steps that matter, and how parameters begin.
#include <cmath>
#include <numeric>

#include "engine/backend.h"
#include "ops/layers.h"
#include "ops/optimizer.h"
#include "ops/schedule.h"
#include "tests/gpu.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;

namespace {

// A matrix, a vector, and a vector that no loss reaches. The sizes cross the chunks that kernels work in.
struct Parts : Module {
  Parts()
      : Module("parts"),
        matrix(*this, "matrix", {70, 61}, {Init::Kind::normal, 1}),
        vector(*this, "vector", {130}, {Init::Kind::uniform, 1}),
        frozen(*this, "frozen", {5}, {Init::Kind::constant, 0.5}) {}
  Parameter matrix, vector, frozen;
};

// The gradient of entry i at step t: a number that any loss might have given.
double slope(size_t i, int step) { return std::sin(static_cast<double>(7 * i + 3) * (step + 1)) * 0.3; }

void gather_slopes(const Parameter& p, int step) {
  std::vector<double> g(static_cast<size_t>(p.shape.count()));
  for (size_t i = 0; i < g.size(); ++i) g[i] = slope(i, step);
  Tape tape;
  tape.backward(sum(mul(p.value, Tensor::from(g, p.shape, p.value.device()))));
}

// What the update rules say, one number at a time.
struct Plain {
  OptimizerRule rule;
  std::vector<double> w, m, v;
  bool matrix;
  void step(double rate, int t, double factor, bool reached) {
    using Kind = OptimizerRule::Kind;
    if (rule.kind == Kind::lars || rule.kind == Kind::lamb) return layerwise(rate, t, factor, reached);
    m.resize(w.size());
    v.resize(w.size());
    for (size_t i = 0; i < w.size(); ++i) {
      const double decay = matrix ? rule.weight_decay : 0, before = w[i];
      double g = reached ? factor * slope(i, t) : 0;
      if (rule.kind != Kind::adamw) g += decay * before;
      if (rule.kind == Kind::sgd) w[i] -= rate * g;
      if (rule.kind == Kind::momentum) {
        m[i] = rule.momentum * m[i] + g;
        w[i] -= rate * m[i];
      }
      if (rule.kind == Kind::adam || rule.kind == Kind::adamw) {
        m[i] = rule.beta1 * m[i] + (1 - rule.beta1) * g;
        v[i] = rule.beta2 * v[i] + (1 - rule.beta2) * g * g;
        if (rule.kind == Kind::adamw) w[i] -= rate * decay * before;
        w[i] -= rate * (m[i] / (1 - std::pow(rule.beta1, t + 1))) /
                (std::sqrt(v[i] / (1 - std::pow(rule.beta2, t + 1))) + rule.epsilon);
      }
    }
  }

  // Two passes: the direction of every number, then a step as long as the norms say.
  void layerwise(double rate, int t, double factor, bool reached) {
    const bool lamb = rule.kind == OptimizerRule::Kind::lamb;
    const double decay = matrix ? rule.weight_decay : 0;
    m.resize(w.size());
    v.resize(w.size());
    std::vector<double> direction(w.size());
    double ww = 0, gg = 0, rr = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      const double g = reached ? factor * slope(i, t) : 0;
      direction[i] = g + decay * w[i];
      if (lamb) {
        m[i] = rule.beta1 * m[i] + (1 - rule.beta1) * g;
        v[i] = rule.beta2 * v[i] + (1 - rule.beta2) * g * g;
        direction[i] = m[i] / (1 - std::pow(rule.beta1, t + 1)) /
                           (std::sqrt(v[i] / (1 - std::pow(rule.beta2, t + 1))) + rule.epsilon) +
                       decay * w[i];
      }
      ww += w[i] * w[i], gg += g * g, rr += direction[i] * direction[i];
    }
    const double length = std::sqrt(ww), below = lamb ? std::sqrt(rr) : std::sqrt(gg) + rule.weight_decay * length;
    const double ratio = matrix && length > 0 && (lamb ? rr : gg) > 0 ? (lamb ? 1 : rule.trust) * length / below : 1;
    for (size_t i = 0; i < w.size(); ++i) {
      if (lamb) {
        w[i] -= rate * ratio * direction[i];
      } else {
        m[i] = rule.momentum * m[i] + rate * ratio * direction[i];
        w[i] -= m[i];
      }
    }
  }
};

// Five steps of both. Returns the largest difference of any weight.
double compare(const OptimizerRule& rule, Device device) {
  Parts parts;
  ParameterSet parameters(parts, device, DType::f64, 3);
  Optimizer optimizer(parameters, rule);
  std::vector<std::pair<Parameter*, Plain>> plain;
  for (Parameter* p : {&parts.matrix, &parts.vector, &parts.frozen})
    plain.push_back({p, {rule, p->value.doubles(), {}, {}, p == &parts.matrix}});
  for (int step = 0; step < 5; ++step) {
    parameters.forget_gradients();
    gather_slopes(parts.matrix, step);
    gather_slopes(parts.vector, step);
    double squares = 0;
    for (size_t i = 0; i < 70 * 61; ++i) squares += slope(i, step) * slope(i, step);
    for (size_t i = 0; i < 130; ++i) squares += slope(i, step) * slope(i, step);
    const double length = std::sqrt(squares), rate = 0.1 / (step + 1);
    const double factor = rule.clip > 0 && length > rule.clip ? rule.clip / length : 1;
    CHECK(optimizer.step(rate) == doctest::Approx(length).epsilon(1e-12));
    for (auto& [p, own] : plain) own.step(rate, step, factor, p != &parts.frozen);
  }
  CHECK(optimizer.steps() == 5);
  double worst = 0;
  for (const auto& [p, own] : plain) {
    const std::vector<double> ours = p->value.doubles();
    for (size_t i = 0; i < ours.size(); ++i) worst = std::max(worst, std::abs(ours[i] - own.w[i]));
  }
  return worst;
}

struct Two : Module {  // two weights that begin at 0
  Two() : Module("two"), weight(*this, "weight", {2}, {}) {}
  Parameter weight;
};

}  // namespace

TEST_CASE("optimizers do what their formulas say, for five steps, with and without decay and clipping") {
  for (const Device device : test::all_devices())
    for (const char* kind : {"sgd", "momentum", "adam", "adamw", "lars", "lamb"})
      for (const double decay : {0.0, 0.1})
        for (const double clip : {0.0, 2.0}) {
          INFO(kind << ", decay " << decay << ", clip " << clip << " on " << name(device));
          OptimizerRule rule;
          rule.kind = find_optimizer(kind);
          rule.weight_decay = decay;
          rule.clip = clip;
          CHECK(compare(rule, device) < 1e-13);  // 5 steps of numbers about 1, some 10 roundings of 1.1e-16 each
        }
  CHECK_THROWS_WITH_AS(find_optimizer("sdg"), doctest::Contains("sgd, momentum, adam, adamw, lars or lamb"),
                       UsageError);
}

TEST_CASE("weight decay touches matrices alone, and adamw's does not pass through the moments") {
  for (const char* kind : {"sgd", "momentum", "adam", "adamw"}) {
    INFO(kind);
    Parts parts;
    ParameterSet parameters(parts, Device::cpu, DType::f64, 3);
    OptimizerRule rule;
    rule.kind = find_optimizer(kind);
    rule.weight_decay = 0.5;
    Optimizer optimizer(parameters, rule);
    const std::vector<double> matrix = parts.matrix.value.doubles(), vector = parts.vector.value.doubles();
    CHECK(optimizer.step(0.1) == 0);  // no gradient at all: what moves is decay
    CHECK(parts.vector.value.doubles() == vector);
    CHECK(parts.frozen.value.doubles() == std::vector<double>(5, 0.5));
    const std::vector<double> decayed = parts.matrix.value.doubles();
    CHECK(decayed != matrix);
    for (size_t i = 0; i < matrix.size(); ++i)
      if (rule.kind != OptimizerRule::Kind::adam) CHECK(decayed[i] == doctest::Approx(0.95 * matrix[i]));
  }
}

TEST_CASE("lars and lamb: a matrix moves by a share of its own length, whatever the size of the gradient") {
  for (const Device device : test::all_devices())
    for (const char* kind : {"lars", "lamb"}) {
      std::vector<double> moved;
      for (const double size : {1.0, 1000.0}) {
        Parts parts;
        ParameterSet parameters(parts, device, DType::f64, 3);
        OptimizerRule rule;
        rule.kind = find_optimizer(kind);
        Optimizer optimizer(parameters, rule);
        const std::vector<double> before = parts.matrix.value.doubles();
        parameters.forget_gradients();
        {
          Tape tape;
          const Tensor numbers = Tensor::full(parts.matrix.shape, DType::f64, device, size);
          tape.backward(sum(mul(parts.matrix.value, numbers)));
        }
        optimizer.step(0.1);
        double length = 0, way = 0;
        const std::vector<double> after = parts.matrix.value.doubles();
        for (size_t i = 0; i < before.size(); ++i) {
          length += before[i] * before[i];
          way += (after[i] - before[i]) * (after[i] - before[i]);
        }
        moved.push_back(std::sqrt(way / length));
      }
      INFO(kind << " on " << name(device));
      CHECK(moved[0] == doctest::Approx(kind == std::string("lars") ? 0.1 * 0.001 : 0.1));
      CHECK(moved[1] == doctest::Approx(moved[0]));
    }
}

TEST_CASE("lars and lamb: a matrix of zeros begins to move") {
  for (const char* kind : {"lars", "lamb"}) {
    Two two;
    ParameterSet parameters(two, Device::cpu, DType::f64, 1);
    OptimizerRule rule;
    rule.kind = find_optimizer(kind);
    Optimizer optimizer(parameters, rule);
    parameters.forget_gradients();
    {
      Tape tape;
      tape.backward(sum(two.weight.value));
    }
    optimizer.step(0.1);
    for (const double w : two.weight.value.doubles()) CHECK(w == doctest::Approx(-0.1));
  }
}

TEST_CASE("what no loss reaches has gradient zero, whatever was there before") {
  Parts parts;
  ParameterSet parameters(parts, Device::cpu, DType::f32, 3);
  fill(parts.frozen.value.grad->sum, NAN);
  Optimizer optimizer(parameters, {.kind = OptimizerRule::Kind::sgd});
  CHECK(optimizer.step(1) == 0);
  CHECK(parts.frozen.value.gradient().doubles() == std::vector<double>(5, 0));
  CHECK(parts.frozen.value.doubles() == std::vector<double>(5, 0.5));
}

// Fault: clipping by the norm of a gradient that was still multiplied by a loss scale.
TEST_CASE("the gradient [3, 4] clipped to norm 1 moves sgd by [-0.6, -0.8], and the norm reported is 5") {
  for (const Device device : test::all_devices()) {
    Two two;
    ParameterSet parameters(two, device, DType::f32, 1);
    Optimizer optimizer(parameters, {.kind = OptimizerRule::Kind::sgd, .clip = 1});
    Tape tape;
    tape.backward(sum(mul(two.weight.value, Tensor::from(std::vector<float>{3, 4}, {2}, device))));
    CHECK(optimizer.step(1) == doctest::Approx(5));
    const std::vector<double> moved = two.weight.value.doubles();
    CHECK(moved[0] == doctest::Approx(-0.6).epsilon(1e-6));
    CHECK(moved[1] == doctest::Approx(-0.8).epsilon(1e-6));
  }
}

TEST_CASE("schedules: first step, end of the warm-up, middle and last step") {
  Schedule s{.base = 0.4, .warmup = 10, .total = 111};
  for (const auto kind : {Schedule::Kind::constant, Schedule::Kind::linear, Schedule::Kind::cosine}) {
    s.kind = kind;
    CHECK(s.rate(0) == doctest::Approx(0.04));
    CHECK(s.rate(9) == doctest::Approx(0.4));
    CHECK(s.rate(10) == doctest::Approx(0.4));
    const bool constant = kind == Schedule::Kind::constant;
    CHECK(s.rate(60) == doctest::Approx(constant ? 0.4 : 0.22));  // half way: the mean of 0.4 and 0.04
    CHECK(s.rate(110) == doctest::Approx(constant ? 0.4 : 0.04));
    CHECK(s.rate(5000) == doctest::Approx(constant ? 0.4 : 0.04));
    for (int64_t step = 10; step < 110; ++step) CHECK(s.rate(step + 1) <= s.rate(step));
  }
  CHECK(s.rate(35) == doctest::Approx(0.04 + 0.36 * 0.5 * (1 + std::sqrt(0.5))));  // a quarter of the cosine
  const Schedule one_step{.kind = Schedule::Kind::cosine, .base = 0.4, .total = 1};
  CHECK(one_step.rate(0) == doctest::Approx(0.4));
  const Schedule all_warmup{.kind = Schedule::Kind::linear, .base = 1, .warmup = 4, .total = 4};
  CHECK(all_warmup.rate(3) == doctest::Approx(1));
}

TEST_CASE("weights begin uniform with the variance that keeps activations' size, biases begin at 0") {
  struct Case {
    Activation activation;
    double variance;  // times the inputs
  };
  for (const auto [activation, gain2] :
       {Case{Activation::relu, 2}, Case{Activation::gelu, 2}, Case{Activation::silu, 2}, Case{Activation::tanh, 1},
        Case{Activation::none, 1}}) {
    struct One : Module {
      explicit One(Activation a) : Module("one"), layer(*this, "layer", 400, 300, a) {}
      Linear layer;
    } one(activation);
    const ParameterSet parameters(one, Device::cpu, DType::f32, 11);
    const std::vector<double> w = one.layer.weight.value.doubles();
    const double n = static_cast<double>(w.size()), bound = std::sqrt(3 * gain2 / 400);
    double mean = 0, square = 0, largest = 0;
    for (const double x : w) mean += x / n, square += x * x / n, largest = std::max(largest, std::abs(x));
    CHECK(std::abs(mean) < 5 * std::sqrt(gain2 / 400 / n));                         // five standard errors
    CHECK(square == doctest::Approx(gain2 / 400).epsilon(5 * std::sqrt(0.8 / n)));  // Var(x²)/E(x²)² = 4/5 of a uniform
    CHECK(largest <= bound * (1 + 1e-6));
    CHECK(largest > 0.999 * bound);
    CHECK(one.layer.bias.value.doubles() == std::vector<double>(300, 0));
  }
}

TEST_CASE("normal and constant parameters begin as asked") {
  Parts parts;
  const ParameterSet parameters(parts, Device::cpu, DType::f64, 3);
  const std::vector<double> w = parts.matrix.value.doubles();
  const double n = static_cast<double>(w.size());
  const double mean = std::accumulate(w.begin(), w.end(), 0.0) / n;
  const double square = std::inner_product(w.begin(), w.end(), w.begin(), 0.0) / n;
  CHECK(std::abs(mean) < 5 / std::sqrt(n));
  CHECK(square == doctest::Approx(1).epsilon(5 * std::sqrt(2 / n)));
  CHECK(parts.frozen.value.doubles() == std::vector<double>(5, 0.5));
  CHECK(parameters.count() == 70 * 61 + 130 + 5);
  CHECK(parameters.all().front() == &parts.matrix);  // matrices lie first, for weight decay
}

TEST_CASE("initial values depend on seed and path, and on nothing else") {
  struct Pair : Module {
    Pair() : Module("pair"), a(*this, "a", 30, 20), b(*this, "b", 30, 20) {}
    Linear a, b;
  };
  const auto values = [](uint64_t seed, DType dtype, Device device) {
    Pair pair;
    const ParameterSet parameters(pair, device, dtype, seed);
    return std::pair{pair.a.weight.value.doubles(), pair.b.weight.value.doubles()};
  };
  const auto [a, b] = values(1, DType::f32, Device::cpu);
  CHECK(a != b);
  CHECK(values(1, DType::f32, Device::cpu).first == a);
  CHECK(values(1, DType::f32, Device::emulated).first == a);
  CHECK(values(2, DType::f32, Device::cpu).first != a);
  const std::vector<double> exact = values(1, DType::f64, Device::cpu).first;
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(exact[i]).epsilon(1e-6));

  struct Longer : Module {  // a neighbour more changes nothing of the others
    Longer() : Module("pair"), first(*this, "first", 7, 7), a(*this, "a", 30, 20) {}
    Linear first, a;
  } longer;
  const ParameterSet parameters(longer, Device::cpu, DType::f32, 1);
  CHECK(longer.a.weight.value.doubles() == a);
}
