// What a profile's tables and sentences say, on made-up numbers.
#include "apps/profile_report.h"
#include "apps/what_if.h"
#include "engine/scope.h"
#include "ops/ops.h"
#include "tests/program.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

TEST_CASE("what-if: each bound on made-up numbers") {
  Profile p;
  p.steps = 2, p.wall = 0.02, p.between = 0.002;  // steps of 10 ms, 1 of them in no op
  p.ops.push_back({.name = "data", .calls = 2, .own = 0.008});
  p.ops.push_back({.name = "gemm", .way = Way::forward, .calls = 2, .own = 0.01});
  Peaks peaks;
  peaks.gemm.best = 100, peaks.copy.best = 10;
  const std::vector<Chain> chains = {{"dropout, add backward", "gpt.block*", 0.004, 0.003}};
  const std::vector<Win> wins = possible_wins(p, chains, peaks, false);
  REQUIRE(wins.size() == 3);
  CHECK(wins[0].name == "prefetch");
  CHECK(wins[0].seconds == doctest::Approx(0.004));
  CHECK(contains(wins[0].text, "max(4 ms, 6 ms) = 6 ms"));
  CHECK(contains(wins[0].text, "at most 1.67 times as fast"));
  CHECK(wins[1].name == "graph");
  CHECK(wins[1].seconds == doctest::Approx(0.001));
  CHECK(contains(wins[1].text, "captures none"));
  CHECK(wins[2].name == "fusion");
  CHECK(wins[2].seconds == doctest::Approx(0.0005));
  CHECK(contains(wins[2].text, "dropout, add backward at gpt.block*"));
  CHECK(contains(possible_wins(p, {}, peaks, true)[2].text, "nothing to fuse"));
  CHECK(possible_wins(p, {}, {}, true).size() == 2);
}

TEST_CASE("roofs: which one bounds an op, what share it reaches, and Amdahl's bound") {
  Peaks peaks;
  peaks.gemm.best = 100, peaks.copy.best = 10;
  OpRow product{.name = "gemm", .way = Way::forward, .calls = 1, .own = 1, .flops = 50e9, .bytes = 1e9, .share = 0.5};
  CHECK_FALSE(product.memory_bound(peaks));
  CHECK(*product.of_roof(peaks) == doctest::Approx(0.5));
  CHECK(product.at_most() == doctest::Approx(2));
  OpRow pass{.name = "add", .way = Way::forward, .calls = 1, .own = 1, .flops = 1e9, .bytes = 4e9};
  CHECK(pass.memory_bound(peaks));
  CHECK(*pass.of_roof(peaks) == doctest::Approx(0.4));
  CHECK_FALSE(pass.of_roof({}).has_value());
  CHECK_FALSE(OpRow{.name = "output", .calls = 1, .own = 1}.of_roof(peaks).has_value());
  Profile p;
  p.steps = 1, p.wall = 2, p.ops = {pass, product};
  p.ops[1].bytes = 1, p.ops[1].flops = 200e9;  // twice what the machine can: a mistake in the count, and marked as one
  CHECK(contains(op_table(p, peaks, 10), "arithmetic!"));
  CHECK(contains(op_table(p, peaks, 1), "1 more"));
}

TEST_CASE("ranges: the larger part of the least time says what bounds them, and they are sorted as ops are") {
  RangeRow products{.name = "b", .calls = 1, .total = 2, .flops = 50e9, .bytes = 1e9, .roof = 0.5, .memory_roof = 0.1};
  RangeRow passes{.name = "a", .calls = 3, .total = 1, .flops = 1e9, .bytes = 4e9, .roof = 0.5, .memory_roof = 0.4};
  CHECK_FALSE(products.memory_bound());
  CHECK(passes.memory_bound());
  CHECK(*passes.of_roof() == doctest::Approx(0.5));
  CHECK_FALSE(RangeRow{.name = "c", .total = 1}.of_roof().has_value());
  Profile p;
  p.steps = 1, p.wall = 3, p.ranges = {passes, products};
  const auto first = [&](const char* by) {
    sort_rows(p, by);
    return p.ranges[0].name;
  };
  CHECK(first("self") == "b");
  CHECK(first("bytes") == "a");
  CHECK(first("flops") == "b");
  CHECK(first("calls") == "a");
  CHECK(first("name") == "a");
  const std::string table = range_table(p, 10);
  for (const char* part :
       {"MFLOP", "moves", "GFLOP/s", "of roof", "bound by", " arithmetic ", " memory ", "25%", "4.00"})
    CHECK_MESSAGE(contains(table, part), part << " in\n" << table);
  const Json json = profile_json(p, {});
  CHECK(json["ranges"][0]["bound"] == "memory");
  CHECK(json["ranges"][0]["gb_per_s"] == doctest::Approx(4));
  CHECK(json["ranges"][1]["gflops"] == doctest::Approx(25));
}

TEST_CASE("fusion: chains are neighbours that memory bounds, and what moves nothing does not part them") {
  double now = 0;
  Tracer tracer(Device::cpu, [&] { return now += 1; });
  const Tensor x = Tensor::full({8, 8}, DType::f32, Device::cpu, 1);
  {
    const Tracer::On on(tracer);
    const Range step("step");
    const Scope scope("block3");
    softmax(reshape(relu(x), {4, 16}));
    matmul(x, x);
    softmax(x);
  }
  tracer.finish();
  Peaks peaks;
  peaks.gemm.best = 100, peaks.copy.best = 1;
  const std::vector<Chain> chains = memory_bound_chains(tracer, peaks);
  REQUIRE(chains.size() == 1);
  CHECK(chains[0].ops == "relu, softmax forward");
  CHECK(chains[0].where == "block*");
  CHECK(chains[0].seconds == 2);
  CHECK(chains[0].win() == 1);
}
