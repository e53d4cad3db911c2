// The loss scale: a pure function of events, and what a step makes of it on every device.
#include "ops/loss_scaler.h"

#include <cmath>
#include <vector>

#include "ops/optimizer.h"
#include "tests/gpu.h"
#include "tests/two_weights.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

namespace tapedeck {
namespace {

constexpr ScalerRule dynamic{.kind = ScalerRule::Kind::dynamic};

// A step of the model with two weights, whose gradient is scaled as a backward pass would scale it.
StepState step(test::TwoWeights& bench, double a, double b, const StepPlan& plan) {
  const double scale = bench.state().scaler.scale;
  bench.step(a * scale, b * scale, 1, plan);
  return bench.state();
}

test::TwoWeights with_scale(Device device, const OptimizerRule& rule, const ScalerRule& scaler, DType dtype) {
  return test::TwoWeights(device, rule, dtype, {.scaler = first_state(scaler)});
}

}  // namespace

TEST_CASE("the loss scale halves at an overflow, doubles after 2,000 good steps, and counts from anew at both") {
  ScalerState s = first_state(dynamic);
  CHECK(s.scale == 65536);
  for (int i = 0; i < 1500; ++i) s = next(s, dynamic, false);
  s = next(s, dynamic, true);
  CHECK(s.scale == 32768);
  CHECK(s.good == 0);
  for (int i = 0; i < 1999; ++i) s = next(s, dynamic, false);
  CHECK(s.scale == 32768);
  s = next(s, dynamic, false);
  CHECK(s.scale == 65536);
  CHECK(s.good == 0);
  CHECK(s.skipped == 1);
  CHECK(s.growths == 1);
  CHECK(s.backoffs == 1);
}

// Fault: a scale that fell to 0, so that every gradient was 0, or grew to infinity, so that every one was NaN.
TEST_CASE("the loss scale is never 0, stays above its floor and never infinite") {
  ScalerState s = first_state(dynamic);
  for (int i = 0; i < 1000; ++i) s = next(s, dynamic, true);
  CHECK(s.scale > 0);
  CHECK(s.in_a_row == 1000);

  ScalerRule rule = dynamic;
  rule.floor = 0.3;
  s = first_state(rule);
  for (int i = 0; i < 100; ++i) s = next(s, rule, true);
  CHECK(s.scale == 0.5f);
  CHECK(s.backoffs == 17);
  CHECK(s.skipped == 100);

  rule = dynamic;
  rule.interval = 1;
  for (int i = 0; i < 1000; ++i) s = next(s, rule, false);
  CHECK(std::isfinite(s.scale));
  CHECK(s.scale == 0x1p127f);
  CHECK(s.growths == 128);
}

TEST_CASE("a fixed scale stays, and counts what it skips") {
  const ScalerRule fixed{.kind = ScalerRule::Kind::fixed, .initial = 1024};
  ScalerState s = first_state(fixed);
  for (int i = 0; i < 5000; ++i) s = next(s, fixed, i % 10 == 0);
  CHECK(s.scale == 1024);
  CHECK(s.skipped == 500);
  CHECK(s.growths == 0);
  CHECK(s.backoffs == 0);
}

// PyTorch 2.15's GradScaler on the same events (tests/peers/loss_scaler.py goes through all 10,000 of them and prints
// these lines): after event, scale, growth tracker, steps skipped so far. The events are overflow where
// (i · 2654435761 mod 2³²) < 2³² / rarity(i), with rarity 4 for i < 100, else 9,000.
TEST_CASE("over 10,000 events the scale is PyTorch's") {
  struct Row {
    int event;
    float scale;
    int32_t good;
    int64_t skipped;
  };
  const Row rows[] = {
#include "tests/peers/loss_scaler_rows.inc"
  };
  ScalerState s = first_state(dynamic);
  size_t row = 0;
  for (int i = 0; i < 10000; ++i) {
    const uint32_t mixed = static_cast<uint32_t>(i) * 2654435761u;
    s = next(s, dynamic, mixed < 0xffffffffu / (i < 100 ? 4 : 9000));
    if (row == std::size(rows) || rows[row].event != i) continue;
    INFO("event " << i);
    CHECK(s.scale == rows[row].scale);
    CHECK(s.good == rows[row].good);
    CHECK(s.skipped == rows[row].skipped);
    ++row;
  }
  CHECK(row == std::size(rows));
  CHECK(s.growths > 0);
}

// Fault: clipping looked at gradients that were still scaled, and clipped every step to almost nothing.
TEST_CASE("gradients are unscaled before they are clipped and before their norm is told") {
  const ScalerRule fixed{.kind = ScalerRule::Kind::fixed, .initial = 1024};
  for (const Device device : test::all_devices())
    for (const DType dtype : {DType::f32, DType::f16}) {
      INFO(name(dtype) << " on " << name(device));
      test::TwoWeights bench = with_scale(device, {.kind = OptimizerRule::Kind::sgd, .clip = 1}, fixed, dtype);
      const StepState s = step(bench, 3, 4, {.schedule = {.base = 1}, .scaler = fixed});
      CHECK(s.norm == doctest::Approx(5).epsilon(1e-3));
      CHECK(bench.weights()[0] == doctest::Approx(-0.6).epsilon(1e-3));
      CHECK(bench.weights()[1] == doctest::Approx(-0.8).epsilon(1e-3));
    }
}

// Fault: the rate, Adam's step count or the moments moved on in a step that was skipped for its overflow.
TEST_CASE(
    "a skipped step halves the scale once and moves nothing else, and the next has the rate that it would have had") {
  const Schedule schedule{.kind = Schedule::Kind::linear, .base = 0.1, .total = 10};
  const StepPlan plan{.schedule = schedule, .halt = true, .scaler = dynamic};
  for (const Device device : test::all_devices()) {
    INFO(name(device));
    test::TwoWeights clean = with_scale(device, {}, dynamic, DType::f16),
                     hit = with_scale(device, {}, dynamic, DType::f16);
    for (int i = 0; i < 3; ++i) step(clean, 1e-4, -2e-4, plan), step(hit, 1e-4, -2e-4, plan);
    const auto weights = hit.weights();
    const auto moments = hit.moments();
    const StepState skipped = step(hit, INFINITY, 1e-4, plan);
    CHECK(skipped.go == 0);
    CHECK(skipped.halted == 0);
    CHECK(skipped.updates == 3);
    CHECK(skipped.scaler.scale == 32768);
    CHECK(skipped.scaler.skipped == 1);
    CHECK(hit.weights() == weights);
    CHECK(hit.moments() == moments);
    CHECK(hit.record(3).scale == 65536);
    CHECK(hit.record(3).scaler.scale == 32768);
    CHECK(hit.record(3).went == 0);
    step(clean, 2e-4, 1e-4, plan);
    const StepState next = step(hit, 2e-4, 1e-4, plan);
    CHECK(next.rate == doctest::Approx(schedule.rate(3)).epsilon(1e-14));
    CHECK(next.scaler.good == 1);
    CHECK(hit.weights() == clean.weights());
    CHECK(hit.weights() != weights);
    CHECK(hit.moments() == clean.moments());
  }
}

// Fault: with a loss that is NaN for good, the scale fell to its minimum and the job skipped steps for ever.
TEST_CASE("thirty skipped steps in a row end the run, and twenty-nine do not") {
  const StepPlan plan{.schedule = {.base = 0.1}, .halt = true, .scaler = dynamic};
  for (const Device device : test::all_devices()) {
    test::TwoWeights bench = with_scale(device, {}, dynamic, DType::f16);
    const auto fail = [&](int times) {
      for (int i = 0; i < times; ++i) step(bench, NAN, 1, plan);
    };
    fail(29);
    CHECK(bench.state().halted == 0);
    CHECK(step(bench, 1e-3, 1e-3, plan).go == 1);
    const auto weights = bench.weights();
    fail(30);
    const StepState s = bench.state();
    CHECK(s.halted == 1);
    CHECK(s.scaler.scale > 0);
    CHECK(s.updates == 1);
    CHECK(bench.record(59).halted == 1);
    CHECK(step(bench, 1e-3, 1e-3, plan).go == 0);
    CHECK(bench.weights() == weights);
  }
}

TEST_CASE("the seed of a backward pass is the batch's share times the scale") {
  for (const Device device : test::all_devices()) {
    const DeviceValue<StepState> state(device, {.scaler = {.scale = 512}});
    CHECK(seed_of(state.ptr(), Tensor::full({}, DType::f32, device, 7), 0.25).item() == 128);
    CHECK(seed_of(state.ptr(), Tensor::full({}, DType::f64, device, 7), 0.1).item() == doctest::Approx(51.2));
  }
}

}  // namespace tapedeck
