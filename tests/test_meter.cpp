// The training clock, evaluation steps and the target, on a time that the test sets.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>

#include "apps/meter.h"

using namespace tapedeck;

TEST_CASE("the training clock stands still during evaluation, checkpoints and logging") {
  double now = 100;
  TrainingClock clock([&] { return now; });
  const auto spend = [&](Phase phase, double seconds) {
    const auto inside = clock.enter(phase);
    now += seconds;
  };
  spend(Phase::data, 5);
  now += 0.5;  // between phases: part of the total only
  {
    const auto training = clock.enter(Phase::train);
    now += 2;
    spend(Phase::eval, 1000);
    now += 3;
    spend(Phase::checkpoint, 50);
    spend(Phase::logging, 7);
    spend(Phase::data_wait, 0.25);
    CHECK_EQ(clock.training(), 5.25);  // read while it runs
  }
  CHECK_EQ(clock.training(), 5.25);
  CHECK_EQ(clock.seconds(Phase::train), 5.25);
  CHECK_EQ(clock.seconds(Phase::data_wait), 0.25);  // a part of training
  CHECK_EQ(clock.seconds(Phase::eval), 1000);
  CHECK_EQ(clock.seconds(Phase::checkpoint), 50);
  CHECK_EQ(clock.seconds(Phase::logging), 7);
  CHECK_EQ(clock.seconds(Phase::data), 5);
  CHECK_EQ(clock.with_evaluation(), 1005.25);
  CHECK_EQ(clock.total(), 1067.75);
}

TEST_CASE("the training clock is left again when an evaluation throws") {
  double now = 0;
  TrainingClock clock([&] { return now; });
  const auto training = clock.enter(Phase::train);
  try {
    const auto pause = clock.enter(Phase::eval);
    now += 10;
    throw 1;
  } catch (int) {}
  now += 1;
  CHECK_EQ(clock.training(), 1);
}

TEST_CASE("the steady clock moves forward") {
  const double before = steady_seconds();
  CHECK_GE(steady_seconds(), before);
}

TEST_CASE("step times: median, quantiles and count in milliseconds") {
  StepTimes times;
  CHECK_FALSE(times.summary());
  for (int i = 0; i <= 100; ++i) times.add(i * 1e-3);
  const auto summary = times.summary();
  CHECK_EQ(summary->n, 101);
  CHECK_EQ(summary->median_ms, doctest::Approx(50));
  CHECK_EQ(summary->p05_ms, doctest::Approx(5));
  CHECK_EQ(summary->p95_ms, doctest::Approx(95));
}

TEST_CASE("evaluations are due at the steps ceil(1.05^k), each once") {
  std::set<int64_t> expected;
  for (int k = 0; std::pow(1.05, k) <= 20000; ++k) expected.insert(static_cast<int64_t>(std::ceil(std::pow(1.05, k))));
  const EvaluationPlan plan;
  std::set<int64_t> due;
  for (int64_t step = -3; step <= 20000; ++step)
    if (plan.due(step)) due.insert(step);
  CHECK(due == expected);
  CHECK(plan.due(1));
  CHECK(plan.due(24));
  CHECK_FALSE(plan.due(25));
  CHECK_FALSE(plan.due(0));
  int far = 0;  // the resolution stays 5 % at large steps
  for (int64_t step = 1000000; step < 1050000; ++step) far += plan.due(step);
  CHECK_EQ(far, 1);
}

TEST_CASE("eval-every replaces the geometric steps") {
  const EvaluationPlan plan{10};
  CHECK(plan.due(10));
  CHECK(plan.due(20));
  CHECK_FALSE(plan.due(1));
  CHECK_FALSE(plan.due(0));
}

TEST_CASE("a crossing is the first hit that the next evaluation confirms") {
  TargetTracker tracker({"accuracy", 0.9});
  const auto at = [](int64_t step) { return Moment{step, step * 32, step * 0.1, step * 0.2}; };
  CHECK_FALSE(tracker.observe(0.5, at(1)));
  CHECK_FALSE(tracker.observe(0.9, at(2)));  // a hit, at the value itself
  CHECK_FALSE(tracker.observe(0.8, at(3)));  // not confirmed
  CHECK_FALSE(tracker.crossing());
  CHECK_FALSE(tracker.observe(std::numeric_limits<double>::quiet_NaN(), at(4)));
  CHECK_FALSE(tracker.observe(0.95, at(6)));
  CHECK_FALSE(tracker.reached());
  CHECK(tracker.observe(0.93, at(8)));
  CHECK(tracker.reached());
  CHECK(tracker.observe(0.1, at(9)));  // what comes later changes nothing
  CHECK_EQ(tracker.first_hit()->step, 2);
  CHECK_EQ(tracker.crossing()->step, 6);
  CHECK_EQ(tracker.crossing()->examples, 192);
  CHECK_EQ(tracker.crossing()->seconds, doctest::Approx(0.6));
  CHECK_EQ(tracker.crossing()->seconds_with_eval, doctest::Approx(1.2));
  CHECK_EQ(tracker.last_miss(), 4);
}

TEST_CASE("a loss target is reached at or below its value, a hit alone is no crossing") {
  TargetTracker tracker({"loss", 0.1});
  tracker.observe(0.2, {1, 1, 1, 1});
  tracker.observe(0.1, {2, 2, 2, 2});
  CHECK_EQ(tracker.first_hit()->step, 2);
  CHECK_FALSE(tracker.reached());
  CHECK_FALSE(tracker.crossing());
  CHECK(tracker.observe(0.05, {3, 3, 3, 3}));
  CHECK_EQ(tracker.crossing()->step, 2);
  CHECK_EQ(tracker.last_miss(), 1);
}
