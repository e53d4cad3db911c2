// tapedeck bench matmul and bench peaks: answers that are checked, times that cover the work, and from where on a
// device is faster.
#include <vector>

#include "apps/crossover.h"
#include "apps/matmul_bench.h"
#include "apps/stats.h"
#include "engine/emulation/emulated_device.h"
#include "ops/ops.h"
#include "tests/program.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#include "tests/mentions.h"

using namespace tapedeck;
using namespace tapedeck::test;

TEST_CASE("the crossover is the size from which on every interval lies below 1") {
  const RatioInterval slower{2, 1.5, 2.5, 5}, level{1, 0.9, 1.1, 5}, faster{0.5, 0.4, 0.6, 5};
  const std::vector<SizeRatio> usual = {{32, slower}, {64, level}, {128, faster}, {256, faster}};
  CHECK(faster_from(usual) == 128);
  const std::vector<SizeRatio> once = {{32, faster}, {64, slower}, {128, faster}};
  CHECK(faster_from(once) == 128);
  const std::vector<SizeRatio> not_at_last = {{32, faster}, {64, level}};
  CHECK_FALSE(faster_from(not_at_last));
  const std::vector<SizeRatio> unknown = {{32, faster}, {64, std::nullopt}};
  CHECK_FALSE(faster_from(unknown));
  CHECK_FALSE(faster_from({}));
}

TEST_CASE("a wrong product is found from its product with a vector") {
  const Tensor a = Tensor::from(std::vector<float>{1, 2, 3, 4}, {2, 2});
  const Tensor b = Tensor::from(std::vector<float>{5, 6, 7, 8}, {2, 2});
  CHECK(product_error(a, b, matmul(a, b)) < 1e-7);
  CHECK(product_error(a, b, Tensor::from(std::vector<float>{19, 22, 43, 51}, {2, 2})) > 1e-3);  // 50 is right
  CHECK(product_error(a, b, Tensor::full({2, 2}, DType::f32, Device::cpu, 0)) == 1);
}

// Fault: GPU times without waiting: those of the asking alone.
TEST_CASE("the time of a product covers all calls, which a device runs when it gets there") {
  const emulation::UseMode lazy(emulation::Mode::lazy);
  const emulation::LogicalTime ticks(emulation::streams());  // a microsecond for each product that has run
  MatmulBench bench(8, Device::emulated, DType::f32);
  bench.round(3);
  REQUIRE(bench.microseconds().size() == 3);
  for (const double us : bench.microseconds()) CHECK(us == doctest::Approx(1));
  CHECK(bench.check() < 1e-6);
}

// Fault: GPU times without waiting do not grow with the size. (Other devices compute while they are asked.)
TEST_CASE("on a GPU: a product of 8192 takes eight times one of 4096, within 40 %") {
  if (no_gpu()) return;
  MatmulBench small(4096, Device::cuda, DType::f32), large(8192, Device::cuda, DType::f32);
  for (int round = 0; round < 3; ++round) small.round(3), large.round(3);
  const double ratio = median(large.microseconds()) / median(small.microseconds());
  CHECK(ratio > 8 * 0.6);
  CHECK(ratio < 8 * 1.4);
}

TEST_CASE("bench matmul: a row for each size, device and precision, beside the CPU") {
  const Outcome run = tapedeck::test::tapedeck({"bench", "matmul", "--sizes", "16,8,16,33", "--device", "emulated",
                                                "--rounds", "2", "--steps", "2", "--threads", "1", "--json"});
  INFO(run.err);
  REQUIRE(run.code == exit_done);
  const Json document = run.json(), rows = document["rows"];
  REQUIRE(rows.size() == 3 * 2 * 3);  // each size once, on two devices, in three precisions
  for (const Json& row : rows) {
    INFO(row.dump());
    CHECK(row["n"] == 4);
    CHECK(row["rounds"].size() == 2);
    CHECK(row["gflops"] > 0);
    CHECK(row["first_us"] > 0);
    CHECK(row["error"] < (row["precision"] == "fp32" ? 1e-6 : 0.02));
    CHECK(row["share_of_best"] <= 1);
    CHECK(row.contains("over_cpu") == (row["device"] == "emulated"));
    CHECK(row.contains("over_fp32") == (row["precision"] != "fp32"));
  }
  CHECK(rows[0]["size"] == 8);
  REQUIRE(document["crossover"].size() == 3);
  for (const Json& one : document["crossover"]) CHECK(one["faster_from"].is_null());  // than the emulation is anything
  const Outcome text = tapedeck::test::tapedeck(
      {"bench", "matmul", "--sizes", "8", "--precision", "bf16", "--rounds", "1", "--steps", "1", "--quiet"});
  CHECK(mentions(text.out, {"first call", "left out", "bf16", "share of the best"}));
  CHECK_FALSE(contains(text.out, "fp16"));
}

TEST_CASE("bench peaks: products and passes over memory, on a device whose rates are no GPU's and say so") {
  const Outcome run = tapedeck::test::tapedeck(
      {"bench", "peaks", "--device", "emulated", "--rounds", "1", "--steps", "1", "--json", "--quiet"});
  INFO(run.err);
  REQUIRE(run.code == exit_done);
  const Json rows = run.json()["rows"];
  REQUIRE(rows.size() == 4);
  for (const Json& row : rows) {
    CHECK(row["best_rate"] >= row["median_rate"]);
    CHECK(row["median_rate"] > 0);
  }
  CHECK(rows[3]["what"] == "x += 1");
  const Outcome text =
      tapedeck::test::tapedeck({"bench", "peaks", "--device", "emulated", "--rounds", "1", "--steps", "1", "--quiet"});
  CHECK(mentions(text.out, {"rates of an emulation", "GFLOP/s", "GB/s"}));
}
