// The numbers of a training step that live on the device: they advance as a plain loop in double says, a step that is
// not finite leaves everything alone, and a kernel that reads them computes what the host would have asked for.
#include "ops/step_state.h"

#include <cmath>

#include "engine/launch.h"
#include "ops/layers.h"
#include "ops/optimizer.h"
#include "tests/gpu.h"
#include "tests/two_weights.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

namespace tapedeck {

namespace {

using Bench = test::TwoWeights;

struct Spoilt {
  double gradient, loss;
};

struct RateAt {  // what a kernel makes of a schedule
  Schedule schedule;
  double* rates;
  HD void operator()(int64_t step) const { rates[step] = schedule.rate(step); }
};

}  // namespace

TEST_CASE("a value in a device's memory comes back as it was written, and copies share it") {
  for (const Device device : test::all_devices()) {
    const DeviceValue<StepState> value(device, {.step = 3, .loss = 0.5});
    const DeviceValue<StepState> same = value;
    CHECK(value.read().step == 3);
    CHECK(value.read().loss == 0.5);
    CHECK(value.read().factor == 1);
    same.write({.step = 4});
    CHECK(value.read().step == 4);
    CHECK(value.read().loss == 0);
  }
}

TEST_CASE("batches gather the loss by their share, count themselves and their examples") {
  for (const Device device : test::all_devices())
    for (const DType dtype : {DType::f32, DType::f64}) {
      const DeviceValue<StepState> state(device);
      double loss = 0;
      int64_t given = 0;
      for (const int64_t count : {32, 32, 6, 32}) {
        const Tensor of_batch = Tensor::full({}, dtype, device, 0.1 * static_cast<double>(given + 1));
        end_batch(state.ptr(), of_batch, static_cast<double>(count) / 70, count);
        loss += static_cast<double>(count) / 70 * of_batch.item();
        given += count;
        CHECK(state.read().loss == doctest::Approx(loss).epsilon(1e-15));
        CHECK(state.read().cursor == given);
      }
      CHECK(state.read().batches == 4);
      CHECK(state.read().step == 0);
    }
  CHECK_THROWS_WITH(end_batch(nullptr, Tensor::full({2}, DType::f32, Device::cpu, 0), 1, 1),
                    doctest::Contains("got [2]"));
}

TEST_CASE("five steps: rate, corrections, clipping and counts are those of a loop in double") {
  const Schedule schedule{.kind = Schedule::Kind::cosine, .base = 0.4, .warmup = 2, .total = 5};
  for (const Device device : test::all_devices()) {
    Bench bench(device, {.clip = 4});
    for (int64_t step = 0; step < 5; ++step) {
      INFO("step " << step << " on " << name(device));
      const double size = static_cast<double>(step) + 0.5, loss = 1 / size;
      bench.step(3 * size, 4 * size, loss, {.schedule = schedule});
      const StepState s = bench.state();
      const double t = static_cast<double>(step + 1);
      CHECK(s.step == step + 1);
      CHECK(s.updates == step + 1);
      CHECK(s.batches == step + 1);
      CHECK(s.go == 1);
      CHECK(s.halted == 0);
      CHECK(s.loss == 0);
      CHECK(s.norm == doctest::Approx(5 * size).epsilon(1e-14));
      CHECK(s.rate == doctest::Approx(schedule.rate(step)).epsilon(1e-14));
      CHECK(s.factor == doctest::Approx(5 * size > 4 ? 4 / (5 * size) : 1).epsilon(1e-14));
      CHECK(s.correction1 == doctest::Approx(1 / (1 - std::pow(0.9, t))).epsilon(1e-14));
      CHECK(s.correction2 == doctest::Approx(1 / std::sqrt(1 - std::pow(0.999, t))).epsilon(1e-12));
      const StepRecord record = bench.record(step);
      CHECK(record.step == step);
      CHECK(record.loss == loss);
      CHECK(record.norm == s.norm);
      CHECK(record.rate == s.rate);
      CHECK(record.went == 1);
    }
    CHECK(bench.record(2).step == 2);  // the ring holds the last three
    CHECK(bench.record(0).step == 3);
  }
}

// Fault: a step count that goes on when a step is skipped, so that Adam's corrections are those of another step.
TEST_CASE("a step that is not finite changes no weight and no moment, is not counted, and the next goes on") {
  for (const Device device : test::all_devices())
    for (const char* kind : {"momentum", "adamw", "lars", "lamb"})
      for (const Spoilt& spoilt : {Spoilt{NAN, 1}, {INFINITY, 1}, {1, NAN}, {1, -INFINITY}}) {
        INFO(kind << " with gradient " << spoilt.gradient << " and loss " << spoilt.loss << " on " << name(device));
        const OptimizerRule rule{.kind = find_optimizer(kind)};
        Bench clean(device, rule), hit(device, rule);
        const StepPlan plan{.schedule = {.base = 0.1}};
        clean.step(1, -2, 1, plan), hit.step(1, -2, 1, plan);
        const auto weights = hit.weights();
        const auto moments = hit.moments();
        hit.step(3, spoilt.gradient, spoilt.loss, plan);
        CHECK(hit.weights() == weights);
        CHECK(hit.moments() == moments);
        CHECK(hit.state().step == 2);
        CHECK(hit.state().updates == 1);
        CHECK(hit.state().go == 0);
        CHECK(hit.state().halted == 0);
        CHECK(hit.record(1).went == 0);
        clean.step(2, 1, 1, plan), hit.step(2, 1, 1, plan);
        CHECK(hit.weights() == clean.weights());
        CHECK(hit.weights() != weights);
        CHECK(hit.moments() == clean.moments());
        CHECK(hit.state().updates == 2);
        CHECK(hit.record(2).went == 1);
      }
}

TEST_CASE("with halt, a step that is not finite stops all later ones") {
  for (const Device device : test::all_devices()) {
    Bench bench(device, {});
    const StepPlan plan{.schedule = {.base = 0.1}, .halt = true};
    bench.step(1, 2, 1, plan);
    const auto weights = bench.weights();
    CHECK(weights != std::vector<double>{0, 0});
    bench.step(1, 2, NAN, plan);
    bench.step(1, 2, 1, plan);
    CHECK(bench.weights() == weights);
    CHECK(bench.state().halted == 1);
    CHECK(bench.state().updates == 1);
    CHECK(bench.state().step == 3);
    CHECK(bench.record(0).went == 1);
    CHECK(bench.record(1).went == 0);
    CHECK(bench.record(2).went == 0);
    CHECK(bench.record(2).loss == 1);
  }
}

TEST_CASE(
    "step(rate) is one step of advance() at a constant rate, and a state that is shared or restored is gone on from") {
  for (const Device device : test::all_devices()) {
    Bench by_plan(device, {}), by_hand(device, {});
    by_plan.step(3, 4, 1, {.schedule = {.base = 0.25}});
    by_hand.two.weight.value.grad->fresh = false;
    copy(by_hand.two.weight.value.grad->sum, Tensor::from(std::vector<double>{3, 4}, {2}));
    CHECK(by_hand.optimizer.step(0.25) == doctest::Approx(5).epsilon(1e-15));
    CHECK(by_hand.weights() == by_plan.weights());
    CHECK(by_hand.optimizer.steps() == 1);

    by_hand.optimizer.restore(by_hand.optimizer.moments(), {.step = 70, .updates = 60, .batches = 140, .loss = 2});
    CHECK(by_hand.optimizer.steps() == 60);
    CHECK(by_hand.state().batches == 140);
    const DeviceValue<StepState> shared(device, {.updates = 9});
    Optimizer other(by_hand.parameters, {}, shared);
    other.step(0);
    CHECK(shared.read().updates == 10);
    CHECK(by_hand.optimizer.steps() == 60);
  }
}

TEST_CASE("dropout with a counter in the device's memory is dropout at that step, forward and backward") {
  for (const Device device : test::all_devices()) {
    const DeviceValue<StepState> state(device, {.batches = 5});
    const auto masks = [&](const RandomKey& key) {
      Tensor x = Tensor::full({3, 43}, DType::f32, device, 1);
      x.require_gradient();
      Tape tape;
      const Tensor y = dropout(x, 0.5, key);
      tape.backward(sum(y));
      CHECK(y.doubles() == x.gradient().doubles());
      return y.doubles();
    };
    const RandomKey by_counter{7, 2, 1, &state.ptr()->batches};
    CHECK(masks(by_counter) == masks({7, 7, 1}));
    CHECK(masks(by_counter) != masks({7, 2, 1}));
    state.write({.batches = 6});  // the same launch, another step
    CHECK(masks(by_counter) == masks({7, 8, 1}));

    struct One : Module {
      One() : Module("one"), dropout(*this, "dropout", 0.5) {}
      Dropout dropout;
    } const one;
    const Tensor x = Tensor::full({300}, DType::f32, device, 1);
    CHECK(one.dropout(x, {true, 7, 2, &state.ptr()->batches}).doubles() == one.dropout(x, {true, 7, 8}).doubles());
  }
}

TEST_CASE("a schedule's rate in a kernel is its rate on the host") {
  Schedule schedule{.base = 0.3, .warmup = 7, .total = 90};
  for (const Device device : test::all_devices())
    for (const auto kind : {Schedule::Kind::constant, Schedule::Kind::linear, Schedule::Kind::cosine})
      for (const bool bent : {false, true}) {
        schedule.kind = kind;
        const Schedule s = bent ? schedule.bent(40, 60) : schedule;
        const Tensor rates = Tensor::empty({100}, DType::f64, device);
        each(device, rates.count(), RateAt{s, rates.ptr<double>()});
        const std::vector<double> ours = rates.doubles();
        for (int64_t step = 0; step < 100; ++step)
          CHECK(ours[static_cast<size_t>(step)] == doctest::Approx(s.rate(step)).epsilon(1e-15));
      }
}

}  // namespace tapedeck
