// --recompute budget=SIZE: plans that fit, at every level, with the same bits; what cannot fit.
#include <string>
#include <vector>

#include "apps/recompute_plan.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"
#include "tests/training.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#include "tests/mentions.h"

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

const Settings gpt = {{"data", "task:copy:length=8,symbols=9"},
                      {"layers", "6"},
                      {"heads", "2"},
                      {"width", "32"},
                      {"seed", "3"},
                      {"batch", "12"},
                      {"dropout", "0.5"},
                      {"precision", "fp64"}},
               mlp = {{"data", "blobs"}, {"hidden", "64,64,64,64"}, {"activation", "gelu"}, {"batch", "12"}};

struct Planned {
  RecomputePlan plan;
  size_t saved;  // by a step of the full batch
  std::vector<double> gradients;
};
Planned planned(const Settings& settings, size_t budget) {
  Training training(with(settings, {{"recompute", "budget=" + std::to_string(budget)}}));
  const RecomputePlan plan = plan_recompute(training.config, training.problem, training.device);
  Config config = training.config;
  config.recompute.plan = plan.ways;
  Learner learner(config, training.problem, 3, training.device, training.dtype);
  learner.parameters.forget_gradients();
  const size_t saved = learn(learner, training.problem, training.problem.throw_away(config.batch), {true, 3, 0}, 1);
  learner.parameters.complete_gradients();
  return {plan, saved, learner.parameters.gradients().doubles()};
}

size_t least_of(const Settings& settings) {
  try {
    planned(settings, 1);
  } catch (const UsageError& e) {
    const std::string what = e.what();
    return std::stoull(what.substr(what.rfind("budget=") + 7));
  }
  return 0;
}

}  // namespace

// Fault: gradients wrong at any budget below everything, and only that was tried.
TEST_CASE("a budget is met at every level that can be, and gradients stay bitwise the same") {
  for (const Settings& model : {gpt, with(gpt, {{"device", "emulated"}, {"layers", "2"}, {"width", "16"}}), mlp}) {
    const Planned all = planned(model, size_t{1} << 40);
    CHECK(all.plan.saved == all.plan.saved_all);
    CHECK(all.saved == all.plan.saved_all);
    CHECK(all.plan.counted == 0);
    const size_t least = least_of(model);
    REQUIRE(least > 0);
    REQUIRE(least < all.saved);
    double before = 0;
    for (const double level : {0.95, 0.8, 0.65, 0.5, 0.3, 0.0}) {
      const size_t budget = least + static_cast<size_t>(level * static_cast<double>(all.saved - least));
      const Planned now = planned(model, budget);
      INFO(now.plan.pieces);
      CHECK(now.saved <= budget);
      CHECK(now.saved == now.plan.saved);
      CHECK(now.gradients == all.gradients);
      CHECK(now.plan.counted >= before);
      CHECK(now.plan.counted < 1);
      before = now.plan.counted;
    }
  }
}

TEST_CASE("a gpt of six blocks uses its budget up to 5 %, and takes cheap outputs first") {
  const Settings wide = with(gpt, {{"width", "128"}});  // else its products are as cheap as its norms
  const Planned all = planned(wide, size_t{1} << 40);
  const size_t least = least_of(wide);
  int tried = 0;
  for (const double share : {0.9, 0.8, 0.65, 0.5, 0.35}) {
    if (share * static_cast<double>(all.saved) < 1.05 * static_cast<double>(least)) continue;
    ++tried;
    const auto budget = static_cast<size_t>(share * static_cast<double>(all.saved));
    const Planned now = planned(wide, budget);
    INFO(now.plan.pieces);
    const auto left = static_cast<double>(budget - now.saved);
    CHECK(left <= 0.05 * static_cast<double>(share > 0.4 ? budget : 2 * budget));  // a way of one block is a large step
    if (share > 0.75)
      for (const char* dear : {"attention", "mlp", "whole"}) CHECK(now.plan.pieces.find(dear) == std::string::npos);
  }
  CHECK(tried >= 4);
}

// Fault: the plan adds up what a piece saves when all do the same, and nobody looked whether a mixture keeps to it.
TEST_CASE("a plan keeps to its budget at every level, also where neighbours save in different ways") {
  for (const Settings& model : {with(gpt, {{"layers", "3"}, {"width", "16"}, {"batch", "3"}}), mlp}) {
    const Training training(with(model, {{"recompute", "budget=1TiB"}}));
    Config config = training.config;
    const RecomputePlan all = plan_recompute(config, training.problem, training.device);
    const size_t least = least_of(model);
    int plans = 0;
    for (size_t budget = least; budget < all.saved_all; budget += (all.saved_all - least) / 40 + 1, ++plans) {
      config.recompute.amount = static_cast<int64_t>(budget);
      const RecomputePlan plan = plan_recompute(config, training.problem, training.device);
      INFO("budget " << budget << ": " << plan.pieces);
      CHECK(plan.saved <= budget);
    }
    CHECK(plans > 30);
  }
}

TEST_CASE("what a plan takes of a step's time is measured on a few examples, and said with the plan") {
  const Training training(with(mlp, {{"recompute", "budget=1TiB"}, {"batch", "20"}}));
  Config config = training.config;
  config.recompute.amount = static_cast<int64_t>(least_of(with(mlp, {{"batch", "20"}})));
  const RecomputePlan plan = plan_recompute(config, training.problem, training.device);
  config.recompute.plan = plan.ways;
  const RecomputeTime time = measure_recompute(config, training.problem, training.device);
  CHECK(time.batch == 16);
  CHECK(time.share > 0);
  CHECK(time.share < 1);
  CHECK(mentions(plan_text(plan, time), {"saved for backward instead of", "(counted)", "(measured on 16 examples)"}));
}

TEST_CASE("a budget below the least is refused with the least, which is taken") {
  const size_t least = least_of(gpt);
  CHECK_NOTHROW(planned(gpt, least));
  const std::string fix = "use budget=" + std::to_string(least) + " or more, or a smaller --batch";
  CHECK_THROWS_WITH_AS(planned(gpt, least - 1), doctest::Contains(fix.c_str()), UsageError);
}

TEST_CASE("train prints its plan, trains with it as a graph too, and keeps the option") {
  const TemporaryFolder folder;
  std::vector<std::string> words = {"train",     "--data",  "task:copy:length=6,symbols=9",
                                    "--layers",  "2",       "--heads",
                                    "2",         "--width", "16",
                                    "--steps",   "3",       "--json",
                                    "--dropout", "0.2",     "--batch",
                                    "8"};
  for (const char* device : {"cpu", "emulated"}) {
    const auto run = [&](const char* name, const std::vector<std::string>& more) {
      std::vector<std::string> all = words;
      all.insert(all.end(), {"--device", device, "--out", folder / device + std::string(name)});
      if (device == std::string("emulated")) all.insert(all.end(), {"--graph", "on"});
      all.insert(all.end(), more.begin(), more.end());
      return tapedeck::test::tapedeck(all);
    };
    const Outcome plain = run("-plain", {});
    REQUIRE(plain.code == exit_done);
    const int64_t saved = plain.json()["memory"]["saved_activations"];
    const std::string budget = "budget=" + std::to_string(saved * 6 / 10);
    const Outcome less = run("-less", {"--recompute", budget});
    INFO(less.err);
    REQUIRE(less.code == exit_done);
    CHECK(mentions(less.err, {"recompute:", "saved for backward instead of", "blocks", "counted", "measured"}));
    CHECK(less.json()["memory"]["saved_activations"].get<int64_t>() <= saved * 6 / 10);
    CHECK(read_file(folder / device + "-less/model.safetensors") ==
          read_file(folder / device + "-plain/model.safetensors"));
    CHECK(Json::parse(read_file(folder / device + "-less/config.json"))["recompute"]["value"] == budget);
    const Outcome none = run("-none", {"--recompute", "budget=1KiB"});
    CHECK(none.code == exit_usage);
    CHECK(mentions(none.err, {"--recompute budget=1024", "the gpt saves at least", "use budget="}));
    CHECK_FALSE(std::filesystem::exists(folder / device + "-none"));
  }
  for (const char* bench : {"step", "precision"}) {
    const Outcome refused = tapedeck::test::tapedeck({"bench", bench, "--recompute", "budget=1MiB"});
    CHECK(refused.code == exit_usage);
    CHECK(mentions(refused.err, {"--recompute budget=1048576", "measures several batches"}));
  }
}

// Fault: an option that nobody had planned for was taken, and did nothing.
TEST_CASE("a budget without a plan is an error, and a run with one can be scored, looked at and gone on with") {
  const Training training(with(mlp, {{"recompute", "budget=4KiB"}}));
  CHECK_THROWS_WITH_AS(make_model(training.config, training.problem), doctest::Contains("a budget without a plan"),
                       Error);
  const TemporaryFolder folder;
  const std::vector<std::string> words = {"train", "--data",       "blobs",       "--hidden",   "16,16",     "--steps",
                                          "4",     "--batch",      "8",           "--quiet",    "--threads", "1",
                                          "--out", folder / "run", "--recompute", "budget=2300"};
  REQUIRE(tapedeck::test::tapedeck(words).code == exit_done);
  for (const std::vector<std::string>& then :
       {std::vector<std::string>{"evaluate", folder / "run"},
        {"train", "--resume", folder / "run", "--steps", "6"},
        {"train", "--data", "blobs", "--recompute", "budget=1MiB", "--dry-run"},
        {"gradcheck", "--data", "blobs", "--hidden", "8", "--recompute", "budget=1MiB"},
        {"graph", "--data", "blobs", "--hidden", "8", "--recompute", "budget=1MiB"}}) {
    const Outcome outcome = tapedeck::test::tapedeck(then);
    INFO(then[0] << ": " << outcome.err);
    CHECK(outcome.code == exit_done);
  }
}
