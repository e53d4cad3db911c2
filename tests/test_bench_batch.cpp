// tapedeck bench batch: the cost of a step by batch size.
#include <vector>

#include "apps/bench_report.h"
#include "apps/step_bench.h"
#include "apps/step_cost.h"
#include "tests/program.h"
#include "tests/settings.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#include "tests/mentions.h"

using namespace tapedeck;
using namespace tapedeck::test;

TEST_CASE("the cost of a step: a + c·B is found again, whatever the sizes weigh") {
  const std::vector<double> batches = {1, 16, 4096};
  const StepCost cost = fit_step_cost(batches, std::vector<double>{2 + 0.5, 2 + 8, 2 + 2048});
  CHECK(cost.fixed == doctest::Approx(2));
  CHECK(cost.per_example == doctest::Approx(0.5));
  CHECK(cost.balance() == doctest::Approx(4));
  CHECK(cost.at(100) == doctest::Approx(52));
}

TEST_CASE("the cost of a step: relative errors count, and neither part is below 0") {
  // 10 % too long at the largest batch alone: squares of times would move a far below 0.
  const StepCost off = fit_step_cost(std::vector<double>{1, 16, 4096}, std::vector<double>{3, 18, 1.1 * 4098});
  CHECK(off.fixed > 1.5);
  CHECK(off.fixed < 2.1);
  const StepCost falling = fit_step_cost(std::vector<double>{1, 2}, std::vector<double>{2, 1});
  CHECK(falling.per_example == 0);
  CHECK(falling.fixed == doctest::Approx(1.2));  // Σ(a/τ − 1)² is least at Σ1/τ / Σ1/τ² = 1.5 / 1.25
  const StepCost bent = fit_step_cost(std::vector<double>{1, 2}, std::vector<double>{1, 4});
  CHECK(bent.fixed == 0);
  CHECK_THROWS_WITH_AS(fit_step_cost(std::vector<double>{8, 8}, std::vector<double>{1, 2}),
                       doctest::Contains("needs two batch sizes"), Error);
}

TEST_CASE("bench batch: a row for every size, the smallest first, with the cost that the fit says") {
  const Outcome bench = tapedeck::test::tapedeck({"bench", "batch", "--batches", "16,1,33", "--hidden", "8", "--rounds",
                                                  "2", "--steps", "3", "--threads", "1", "--json", "--quiet"});
  INFO(bench.err);
  REQUIRE(bench.code == exit_done);
  const Json document = bench.json(), rows = document["rows"];
  REQUIRE(rows.size() == 3);
  CHECK(document["warmup_steps"] == StepBench::warmup_steps);
  CHECK(document["outputs_error"] < 1e-5);
  const double a = document["fit"]["a_ms"], c = document["fit"]["c_us_per_example"];
  for (size_t i = 0; i < 3; ++i) {
    const double batch = rows[i]["batch"], median_ms = rows[i]["median_ms"];
    CHECK(batch == std::vector<double>{1, 16, 33}[i]);
    CHECK(rows[i]["n"] == 6);
    CHECK(rows[i]["us_per_example"] == doctest::Approx(median_ms / batch * 1e3));
    CHECK(rows[i]["predicted_ms"] == doctest::Approx(a + c * batch / 1e3));
    CHECK(rows[i]["cheaper"]["n"] == 2);
    CHECK(rows[i]["unstable"].is_boolean());
  }
  CHECK(rows[0]["cheaper"]["ratio"] == 1);
  const Outcome one = tapedeck::test::tapedeck(
      {"bench", "batch", "--batches", "4", "--hidden", "8", "--rounds", "2", "--steps", "3", "--quiet"});
  CHECK(one.code != exit_done);
  CHECK(mentions(one.err, {"--batches", "two sizes"}));
}

TEST_CASE("bench batch: a size given twice is measured once, and one that is left alone has its row without a fit") {
  const auto bench = [](const char* batches) {
    return tapedeck::test::tapedeck({"bench", "batch", "--batches", batches, "--hidden", "8", "--rounds", "2",
                                     "--steps", "2", "--memory-limit", "64MiB", "--json", "--quiet"});
  };
  CHECK(bench("4,1,4").json()["rows"].size() == 2);
  const Outcome alone = bench("4,10000000");
  INFO(alone.err);
  CHECK(alone.code == exit_out_of_memory);
  CHECK(contains(alone.err, "The other rows stand"));
  const Json document = alone.json();
  REQUIRE(document["rows"].size() == 1);
  CHECK(document["rows"][0]["predicted_ms"].is_null());
  CHECK(document["fit"].is_null());
}

// Fault: an example's result depends on who shares its batch, and costs are compared of different work.
TEST_CASE("outputs of an example are the same within rounding at every batch size") {
  const Config config = configure("bench batch", {{"hidden", "24"}, {"threads", "2"}});
  const std::vector<double> all = StepBench(config, 300, Device::cpu, false).outputs();
  for (const int64_t batch : {1, 7, 16, 33, 256}) {
    const std::vector<double> some = StepBench(config, batch, Device::cpu, false).outputs();
    REQUIRE(some.size() == static_cast<size_t>(batch * StepBench::classes));
    double worst = 0, size = 0;
    for (size_t i = 0; i < some.size(); ++i)
      worst = std::max(worst, std::abs(some[i] - all[i])), size = std::max(size, std::abs(all[i]));
    CHECK(size > 0);
    CHECK(worst <= 32 * eps(DType::f32) * size);  // sums of 784 products, in another order
  }
}

TEST_CASE("times are called unstable when one in twenty took half as long again as the median") {
  const auto unstable = [](std::vector<double> times) {
    Json row;
    add_times(row, "median_ms", times);
    return row["unstable"] == true;
  };
  CHECK_FALSE(unstable({1, 1.1, 1.2, 0.9, 1}));
  CHECK(unstable({1, 1.1, 1.2, 0.9, 2}));
  CHECK_FALSE(unstable({}));
  std::vector<double> one_of_many(100, 1.0);
  one_of_many[7] = 50;  // that happens to everybody
  CHECK_FALSE(unstable(one_of_many));
}
