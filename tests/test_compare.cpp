// tapedeck compare: its two sides, its statistics, and a run of it.
#include <cmath>
#include <filesystem>
#include <fstream>

#include "apps/compare_report.h"
#include "apps/compare_sides.h"
#include "tests/message_of.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"

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

Sides sides(const std::vector<Setting>& flags) { return compare_sides(configure("compare", flags)); }
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

// Faults: options of a file or of the environment that a default then overruled, and a flag that overruled a run's own.
TEST_CASE("compare: files, the environment and runs say what the sides are") {
  const TemporaryFolder folder;
  std::ofstream(folder / "three.json") << R"({"epochs": 3, "data": "blobs"})";
  std::ofstream(folder / "sort.json") << R"({"data": "task:copy:length=4,symbols=5"})";
  Sides s = sides({{"config", folder / "three.json"}, {"a", "--lr 0.1"}, {"b", "--lr 0.2"}});
  CHECK(s.a.epochs == 3);
  CHECK(s.b.data == "blobs");
  s = sides({{"preset", "fused"}, {"config", folder / "sort.json"}});
  CHECK(s.a.data == "task:copy:length=4,symbols=5");
  CHECK(s.a.attention == "composed");
  s = compare_sides(configure("compare", {{"a", "--lr 0.1"}, {"b", "--threads 3"}}, "2"));
  CHECK(s.a.threads == 2);
  CHECK(s.b.threads == 3);

  const std::string run = folder / "run";
  REQUIRE(tapedeck::test::tapedeck({"train", "--data", "blobs", "--batch", "16", "--steps", "3", "--seed", "7",
                                    "--hidden", "8", "--threads", "1", "--quiet", "--out", run})
              .code == exit_done);
  s = sides({{"a", run}, {"b", "--data blobs --hidden 8"}, {"batch", "64"}, {"threads", "1"}, {"steps", "3"}});
  CHECK(s.a.batch == 16);
  CHECK(s.b.batch == 64);
  CHECK(s.a.hidden == std::vector<int64_t>{8});
  CHECK(s.a.threads == 1);
  CHECK(s.named_a == run);
  REQUIRE(s.differences.size() == 1);  // not the seed, which the pairs have
  CHECK(s.differences[0] == "batch 16 / 64");
  s = sides({{"a", run}, {"b", "--lr 0.1"}, {"config", folder / "three.json"}});
  CHECK(s.a.steps == 3);
  CHECK(s.b.epochs == 3);
  CHECK(contains(refusal({{"a", run}, {"b", run}, {"batch", "64"}}), "--batch: both sides are runs"));
  CHECK(sides({{"a", run}, {"b", run}, {"threads", "1"}, {"json", "true"}}).differences.empty());

  const Outcome both =
      tapedeck::test::tapedeck({"compare", "--a", run, "--b", run, "--seeds", "1", "--json", "--quiet"});
  INFO(both.err);
  REQUIRE(both.code == exit_done);
  CHECK(both.json()["metric"]["difference"] == 0);
  CHECK(both.json()["runs_a"][0]["steps"] == 3);
  std::ofstream(folder / "run/config.json") << "{}";
  CHECK(contains(refusal({{"a", run}, {"b", "--lr 2"}}), "does not say model, without which"));
  std::ofstream(folder / "run/config.json") << "{\"data\": ";
  CHECK(contains(refusal({{"a", run}, {"b", "--lr 2"}}), "the JSON ends before it is complete"));
  std::filesystem::remove(folder / "run/config.json");
  CHECK(contains(refusal({{"a", run}, {"b", "--lr 2"}}), "nor is"));
}

TEST_CASE("compare: what a side cannot say is refused in a sentence") {
  CHECK(contains(refusal({{"a", "--seed 3"}, {"b", "--lr 2"}}), "--a: --seed holds for both sides"));
  CHECK(contains(refusal({{"a", "--lr 2"}, {"b", "--json"}}), "--b: --json holds for both sides"));
  CHECK(contains(refusal({{"a", "--data 'csv:my file.csv"}, {"b", "--lr 2"}}), "--a: ' opens in"));
  CHECK(contains(refusal({{"a", "--lr 1 --lr 2"}, {"b", "--lr 2"}}), "given twice"));
  CHECK(contains(refusal({{"a", "--lr"}, {"b", "--lr 2"}}), "--lr has no value"));
  CHECK(contains(refusal({{"a", "--recompute budget=-1"}, {"b", "--lr 2"}}), "--recompute got"));
  CHECK(sides({{"a", "--lr\t0.5\n--batch 3"}, {"b", "--lr 2"}}).a.lr == 0.5);
}

TEST_CASE("compare: pairs of seeds give difference and step ratio, and those that diverged are left out of both") {
  Comparison c{.a = "x", .b = "y"};
  c.runs_a = {run(0.90, 1, 2), run(0.91, 1, 2), run(0.92, 1, 2), run(0.10, 1, 2)};
  c.runs_b = {run(0.93, 1, 1), run(0.94, 1, 1), run(0.95, 1, 1), run(0.10, NAN, 40, "diverged")};
  MetricComparison m = compare_metric(c);
  CHECK(m.name == "accuracy");
  CHECK(m.a.size() == 3);
  CHECK(*m.difference == doctest::Approx(0.03));
  CHECK(m.interval->low == doctest::Approx(0.03).epsilon(1e-6));
  CHECK(m.shown());
  CHECK_FALSE(m.within_spread());
  std::string report = compare_report(c);
  INFO(report);
  CHECK(contains(report, "b diverged in 1 of 4 runs, which are left out"));
  CHECK(contains(report, "step time 2 ms -> 1 ms, ratio 0.500 [0.500, 0.500]"));
  CHECK(contains(report, "n = 300 and 300 steps, 3 pairs of runs"));
  CHECK(contains(report, "seeds n = 3"));
  CHECK(contains(report, "outside the seed spread; difference +0.0300 [+0.0300, +0.0300], which does not cover 0"));

  c.runs_b[0] = run(0.88, 1, 1), c.runs_b[1] = run(0.92, 1, 1), c.runs_b[2] = run(0.93, 1, 1);
  m = compare_metric(c);
  CHECK(*m.difference == doctest::Approx(0.0));
  CHECK(m.interval->high == doctest::Approx(4.30265273 * 0.0173205 / std::sqrt(3.0)).epsilon(1e-4));
  CHECK_FALSE(m.shown());
  CHECK(contains(compare_report(c),
                 "within the seed spread; difference +0.0000 [-0.0430, +0.0430], no difference shown"));

  // Far below what seeds make of either, and yet the same in every pair: both are said.
  c.runs_b[0] = run(0.901, 1, 1), c.runs_b[1] = run(0.911, 1, 1), c.runs_b[2] = run(0.921, 1, 1);
  CHECK(contains(compare_report(c), "within the seed spread; difference +0.0010 [+0.0010, +0.0010], which does not"));
  CHECK(compare_json(c)["metric"]["within_seed_spread"] == true);
  CHECK(compare_json(c)["metric"]["difference_shown"] == true);
  CHECK(compare_json(c)["step_ratio"]["n"] == 3);
  c.runs_a[0].final.validation_accuracy.reset();  // numbers to predict: judged by the loss
  CHECK(compare_metric(c).name == "loss");
}

TEST_CASE("compare: one seed has step times too, and steps of other sizes are said") {
  Comparison c{.a = "x", .b = "y", .runs_a = {run(0.9, 1, 2)}, .runs_b = {run(0.9, 1, 3)}};
  CHECK(contains(compare_report(c), "step time 2 ms -> 3 ms (same machine, same batch, in turns"));
  CHECK(contains(compare_report(c), "one seed shows no spread"));
  CHECK(compare_json(c)["step_ratio"].is_null());
  CHECK(compare_json(c)["step_ms"]["b"][0] == 3);
  CHECK(compare_json(c)["metric"]["within_seed_spread"].is_null());
  c.runs_a[0].batch = 32, c.runs_b[0].batch = 16, c.runs_b[0].accumulate = 4;
  CHECK(contains(compare_report(c), "same machine, other batches: 32 and 64 examples a step, in turns"));
  CHECK_FALSE(contains(compare_report(c), "skipped"));
  c.runs_b[0].steps = 100, c.runs_b[0].loss_scale.skipped = 99;  // and still it is no divergence
  CHECK(contains(compare_report(c), "b skipped 99 of its 100 steps"));
  c.runs_b[0].status = "diverged";
  CHECK(contains(compare_report(c), "step time: no seed ended well on both sides"));
}

TEST_CASE("compare: decisions that differ are counted, with what the first side's choice leads by") {
  OutputComparison o{};
  // Three numbers a decision; the size of all of a's is 2.
  const std::vector<double> a = {2, -2, 2, 2, 2, -2, -2, 2, 2, 2, -2, 2}, b = {2, -2, 1, 1, 2, -2, 2, 1, 1, 3, -2, 2};
  compare_decisions(o, a, b, 3);
  CHECK(o.decisions == 4);
  CHECK(o.different == 2);
  CHECK(*o.same == 0.5);
  CHECK(*o.largest_margin == 2);  // (2 − −2) / 2, in the third
  CHECK(*o.median_margin == 1);   // and 0 in the second, where a has two largest
  o = {};
  compare_decisions(o, {INFINITY, 1, NAN, 1}, {1, INFINITY, 1, 2}, 2);
  CHECK(o.different == 2);
  CHECK(std::isinf(*o.median_margin));
  CHECK(std::isinf(*o.largest_margin));
}

TEST_CASE("compare: an error is unusual above and below what its precision makes") {
  const auto unusual = [](const char* precision, double error) {
    Config config;
    config.precision = precision;
    return output_error(error, config).unusual();
  };
  CHECK_FALSE(unusual("fp32", 1.9e-7));
  CHECK_FALSE(unusual("fp16", 3.1e-4));
  CHECK_FALSE(unusual("bf16", 2.5e-3));
  CHECK_FALSE(unusual("fp64", 0));
  CHECK(unusual("fp32", 3.1e-4));  // as if it computed in fp16
  CHECK(unusual("fp16", 2.5e-3));  // in bf16
  CHECK(unusual("bf16", 3.1e-4));  // in fp16
  CHECK(unusual("bf16", 1.9e-7));  // in fp32
  CHECK(unusual("fp16", 1.9e-7));
  CHECK(unusual("fp32", 1e-15));  // in fp64
  CHECK(unusual("fp64", 1.9e-7));
  for (const char* precision : {"fp64", "fp32", "fp16", "bf16"}) CHECK(unusual(precision, NAN));
  const Comparison c{.a = "x",
                     .b = "y",
                     .outputs = OutputComparison{.examples = 1,
                                                 .outputs = 1,
                                                 .a = {2.5e-3, 1e-4, 1.6e-3},
                                                 .b = {3e-4, 1e-4, 1.6e-3},
                                                 .same = {},
                                                 .median_margin = {},
                                                 .largest_margin = {}}};
  CHECK(contains(compare_report(c), "a: 2.50e-03  unusual: its precision makes 1.0e-04 to 1.6e-03"));
  CHECK(contains(compare_report(c), "b: 3.00e-04\n"));
}

TEST_CASE("compare: outputs of other functions or of other examples are not compared") {
  const auto outputs_of = [](const char* a, const char* b) {
    const Outcome result = tapedeck::test::tapedeck({"compare", "--a", a, "--b", b, "--data", "blobs", "--steps", "2",
                                                     "--seeds", "1", "--threads", "1", "--json", "--quiet"});
    INFO(result.err);
    REQUIRE(result.code == exit_done);
    return result.json();
  };
  CHECK(outputs_of("--activation relu", "--activation tanh")["outputs"].is_null());
  CHECK(outputs_of("--activation relu", "--activation tanh")["outputs_why_not"] ==
        "the sides compute other functions, or of other examples: activation relu / tanh");
  CHECK(outputs_of("--hidden 8", "--hidden 16")["outputs"].is_null());
  CHECK(outputs_of("--validation 0.1", "--validation 0.2")["outputs"].is_null());
  CHECK(outputs_of("--batch 8", "--batch 16")["outputs"]["different"] == 0);
}

// Fault: a budget that nobody had planned for compared none with none.
TEST_CASE("compare: recomputation changes no bit, and a budget is kept to") {
  const Outcome result = tapedeck::test::tapedeck(
      {"compare", "--a", "--recompute none", "--b", "--recompute budget=4KiB", "--data", "blobs", "--hidden", "16,16",
       "--batch", "32", "--steps", "3", "--seeds", "1", "--threads", "1", "--json"});
  INFO(result.err);
  REQUIRE(result.code == exit_done);
  CHECK(contains(result.err, "recompute: "));
  const Json out = result.json();
  CHECK(out["runs_b"][0]["memory"]["saved_activations"] <= 4 * 1024);
  CHECK(out["runs_a"][0]["memory"]["saved_activations"] > 4 * 1024);
  CHECK(out["metric"]["difference"] == 0);
  CHECK(out["outputs"]["different"] == 0);
}

TEST_CASE("compare: what a side is refused for, or has no memory for, names the side") {
  const auto outcome = [](const char* b) {
    return tapedeck::test::tapedeck({"compare", "--a", "--hidden 8", "--b", b, "--data", "blobs", "--steps", "2",
                                     "--seeds", "1", "--threads", "1", "--quiet", "--json"});
  };
  struct Row {
    const char *b, *words;
  };
  for (const Row& row : {Row{"--batch 100000", "side b: --batch 100000: blobs has only"},
                         {"--hidden 8 --recompute every=2", "side b: --recompute every=2: the mlp has only 1"},
                         {"--recompute budget=1", "side b: --recompute budget=1: the mlp saves at least"},
                         {"--graph on --device cpu", "side b: "}}) {
    const Outcome refused = outcome(row.b);
    INFO(row.b << ": " << refused.err);
    CHECK(refused.code == exit_usage);
    CHECK(contains(refused.err, row.words));
    CHECK(refused.out.empty());
  }
  const Outcome missing = outcome("--data csv:/nowhere/at-all.csv");
  CHECK(missing.code != exit_done);
  CHECK(contains(missing.err, "side b: "));
  const Outcome large = outcome("--hidden 4096,4096 --memory-limit 1MiB");
  INFO(large.err);
  CHECK(large.code == exit_out_of_memory);
  CHECK(contains(large.err, "side b: "));
}

TEST_CASE("compare: presets train both of their sides, which agree") {
  for (const char* preset : {"recompute", "device", "fused", "graph"}) {
    std::vector<std::string> words = {"compare", preset,      "--steps", "2",      "--batch", "2",     "--seeds",
                                      "1",       "--threads", "1",       "--json", "--quiet", "--data"};
    const bool gpt = std::string(preset) == "fused";
    if (gpt)
      words.insert(words.end(), {"task:copy:length=5,symbols=9", "--layers", "1", "--width", "8", "--heads", "2"});
    else
      words.insert(words.end(), {"blobs", "--hidden", "4"});
    const Outcome result = tapedeck::test::tapedeck(words);
    INFO(preset << " " << result.err);
    REQUIRE(result.code == exit_done);
    const Json out = result.json();
    CHECK(out["outputs"]["a"]["unusual"] == false);
    CHECK(out["outputs"]["b"]["unusual"] == false);
    CHECK(std::abs(out["metric"]["difference"].get<double>()) < 0.1);
  }
}

TEST_CASE("compare: where every run of a side diverges it says so and exits as train does") {
  const Outcome result =
      tapedeck::test::tapedeck({"compare", "--a",     "--lr 1e30",   "--b",       "--lr 1e-3",  "--data",   "blobs",
                                "--loss",  "mse",     "--optimizer", "sgd",       "--schedule", "constant", "--steps",
                                "5",       "--seeds", "2",           "--threads", "1",          "--quiet"});
  INFO(result.out << result.err);
  CHECK(result.code == exit_diverged);
  CHECK(contains(result.out, "a diverged in 2 of 2 runs"));
  CHECK(contains(result.out, "outputs: not compared, no run of a ended well"));
  CHECK(contains(result.out, "validation: no seed ended well on both sides"));
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
  CHECK(out["metric"]["difference_shown"] == false);
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
