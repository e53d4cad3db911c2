// tapedeck compare: its two sides, its statistics, and a run of it.
#include <cmath>

#include "apps/compare_report.h"
#include "apps/compare_sides.h"
#include "tests/message_of.h"
#include "tests/program.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

Summary run(double accuracy, double loss, double step_ms, const char* status = "done") {
  Summary s;
  s.status = status;
  s.final.validation_accuracy = accuracy;
  s.final.validation_loss = loss;
  s.step_ms = {step_ms, step_ms, step_ms, 100};
  return s;
}

struct Expected {
  const char* precision;
  double low, high;  // of the error against f64
};

Sides sides(std::vector<Setting> flags) { return compare_sides(configure("compare", flags)); }
std::string refusal(const std::vector<Setting>& flags) {
  return message_of([&] { sides(flags); });
}

}  // namespace

TEST_CASE("compare: a side's own options come before those for both, which come before defaults") {
  const Sides s =
      sides({{"a", "--lr 0.01 --hidden 8,8"}, {"b", "--lr=0.02 --optimizer 'sgd'"}, {"lr", "0.5"}, {"batch", "7"}});
  CHECK(s.a.lr == 0.01);
  CHECK(s.b.lr == 0.02);
  CHECK(s.a.batch == 7);
  CHECK(s.b.batch == 7);
  CHECK(s.a.hidden == std::vector<int64_t>{8, 8});
  CHECK(s.b.optimizer == "sgd");
  CHECK(s.a.command == "train");
  CHECK_FALSE(s.a.target);  // both train equally long
  CHECK(s.differences.empty());
}

// Fault: an A/B test in which B had another default besides the change, and nobody saw it.
TEST_CASE("compare: what differs beside the named change is said") {
  const Sides s = sides({{"a", "--optimizer adam"}, {"b", "--optimizer adamw"}});
  REQUIRE(s.differences.size() == 1);
  CHECK(s.differences[0] == "weight-decay 0 / 0.01");
  CHECK(contains(compare_report({.a = s.named_a, .b = s.named_b, .differences = s.differences}),
                 "warning: they also differ in weight-decay 0 / 0.01"));
}

TEST_CASE("compare: sides that are no options are refused with the side and the nearest option") {
  CHECK(contains(refusal({}), "needs two sides"));
  CHECK(contains(refusal({{"a", "--lrr 3"}, {"b", "--lr 2"}}), "--a: unknown option --lrr; the nearest is --lr"));
  CHECK(contains(refusal({{"a", "--lr 3"}, {"b", "no/run"}}), "--b: \"no/run\" is no option of train"));
  CHECK(contains(refusal({{"a", "--lr x"}, {"b", "--lr 2"}}), "side a (--lr x): --lr got \"x\""));
  CHECK(contains(refusal({{"a", "--resume x"}, {"b", "--lr 2"}}), "--resume"));
}

TEST_CASE("compare: pairs of seeds give the difference with its interval, and those that diverged are left out") {
  Comparison c{.a = "x", .b = "y"};
  c.runs_a = {run(0.90, 1, 2), run(0.91, 1, 2), run(0.92, 1, 2), run(0.10, 1, 2)};
  c.runs_b = {run(0.91, 1, 1), run(0.92, 1, 1), run(0.93, 1, 1), run(0.10, NAN, 1, "diverged")};
  MetricComparison m = compare_metric(c);
  CHECK(m.name == "accuracy");
  CHECK(m.a.size() == 3);
  CHECK(*m.difference == doctest::Approx(0.01));
  CHECK(*m.low == doctest::Approx(0.01).epsilon(1e-6));
  CHECK_FALSE(m.within_spread());
  c.runs_b[0] = run(0.88, 1, 1);
  m = compare_metric(c);
  CHECK(*m.difference == doctest::Approx(0.0));
  CHECK(*m.high == doctest::Approx(4.30265273 * 0.0173205 / std::sqrt(3.0)).epsilon(1e-4));
  CHECK(m.within_spread());
  const std::string report = compare_report(c);
  INFO(report);
  CHECK(contains(report, "b diverged in 1 of 4 runs"));
  CHECK(contains(report, "step time 2 ms -> 1 ms, ratio 0.500 [0.500, 0.500]"));
  CHECK(contains(report, "seeds n = 3"));
  CHECK(contains(report, "within the seed spread"));
  c.runs_a[0].final.validation_accuracy.reset();  // numbers to predict: judged by the loss
  CHECK(compare_metric(c).name == "loss");
}

TEST_CASE("compare: a change that changes nothing gives equal outputs, decisions and weights") {
  const Outcome same =
      tapedeck::test::tapedeck({"compare", "--a", "--graph off", "--b", "--graph off", "--data", "blobs", "--epochs",
                                "1", "--seeds", "2", "--threads", "1", "--json", "--quiet"});
  INFO(same.err);
  REQUIRE(same.code == exit_done);
  const Json out = same.json();
  CHECK(out["outputs"]["a"]["relative"] == out["outputs"]["b"]["relative"]);
  CHECK(out["outputs"]["a"]["relative"] > 0);
  CHECK(out["outputs"]["a"]["unusual"] == false);
  CHECK(out["outputs"]["different"] == 0);
  CHECK(out["outputs"]["decisions"] > 0);
  CHECK(out["metric"]["difference"] == 0);
  CHECK(out["metric"]["within_seed_spread"] == true);
  CHECK(out["runs_a"].size() == 2);
}

TEST_CASE("compare precision: errors of 16 bits are those of their rounding, for mlp and gpt") {
  for (const char* data : {"blobs", "task:copy"})
    for (const Expected& half : {Expected{"bf16", 1e-4, 2e-2}, {"fp16", 1e-5, 3e-3}}) {
      const Outcome result = tapedeck::test::tapedeck(
          {"compare", "precision", "--b", "--precision " + std::string(half.precision), "--data", data, "--steps", "30",
           "--seeds", "1", "--threads", "1", "--json", "--quiet"});
      INFO(data << " " << half.precision << " " << result.err);
      REQUIRE(result.code == exit_done);
      const Json outputs = result.json()["outputs"];
      CHECK(outputs["a"]["relative"] < 1e-5);
      CHECK(outputs["b"]["relative"] > half.low);
      CHECK(outputs["b"]["relative"] < half.high);
    }
}
