// --recompute in a training run: the same bits whatever is recomputed, less memory, and what is refused.
#include <string>
#include <vector>

#include "engine/backend.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"
#include "tests/training.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

const Settings gpt = {{"data", "task:copy:length=5,symbols=9"},
                      {"layers", "3"},
                      {"heads", "2"},
                      {"width", "16"},
                      {"seed", "3"},
                      {"dropout", "0.5"}},
               mlp = {{"data", "blobs"}, {"hidden", "24,16,24"}, {"seed", "3"}, {"dropout", "0.5"}};

std::vector<double> gradients_of_one_step(const Settings& settings) {
  Training training(settings);
  Learner learner(training.config, training.problem, 3, training.device, training.dtype);
  learner.parameters.forget_gradients();
  learn(learner, training.problem, training.problem.throw_away(8), {true, 3, 0}, 1);
  learner.parameters.complete_gradients();
  return learner.parameters.gradients().doubles();
}

size_t peak_of(const Settings& settings) {
  Training training(settings);
  return static_cast<size_t>(*training.trainer.run().memory.peak_bytes);
}

}  // namespace

// Fault: the mask is drawn anew, so that gradients belong to another sample.
TEST_CASE("with dropout the gradients of a step are those without --recompute, bit by bit, on every device") {
  for (const char* device : {"cpu", "emulated"})
    for (const Settings& model : {gpt, with(mlp, {{"activation", "relu"}}), with(mlp, {{"activation", "gelu"}})}) {
      const Settings base = with(model, {{"device", device}});
      const std::vector<double> plain = gradients_of_one_step(base);
      for (const char* recompute : {"blocks", "every=2", "every=3"}) {
        INFO(model[0].value << " on " << device << ", " << recompute);
        CHECK(gradients_of_one_step(with(base, {{"recompute", recompute}})) == plain);
      }
    }
}

// Fault: only one setting of the knob was ever tried.
TEST_CASE("trained weights are those without --recompute, bit by bit, with accumulation and as a graph") {
  struct How {
    Settings settings;
    std::vector<const char*> policies;
  };
  const Settings four = {{"steps", "4"}, {"batch", "4"}, {"accumulate", "4"}},
                 three = {{"steps", "3"}, {"batch", "2"}, {"accumulate", "3"}};  // the third is replayed
  const How hows[] = {
      {with({{"device", "cpu"}}, four), {"blocks", "every=1", "every=2", "every=3"}},
      {with({{"device", "cpu"}, {"precision", "fp16"}}, four), {"blocks", "every=2"}},
      {with({{"device", "emulated"}, {"graph", "on"}}, three), {"every=2"}}};  // which takes the longest
  for (const Settings& model : {gpt, mlp})
    for (const How& how : hows) {
      const Settings base = with(with(model, how.settings), {{"eval-every", "100"}});
      const std::vector<double> plain = trained_weights(base);
      for (const char* recompute : how.policies) {
        INFO(model[0].value << " on " << how.settings[0].value << ", " << recompute);
        CHECK(trained_weights(with(base, {{"recompute", recompute}})) == plain);
      }
    }
}

TEST_CASE("--recompute takes less memory at the peak") {
  const Settings base = {{"data", "task:copy:length=20,symbols=9"},
                         {"layers", "6"},
                         {"heads", "2"},
                         {"width", "32"},
                         {"batch", "64"},
                         {"steps", "2"},
                         {"eval-every", "100"}};
  const size_t none = peak_of(base), blocks = peak_of(with(base, {{"recompute", "blocks"}})),
               halves = peak_of(with(base, {{"recompute", "every=3"}}));
  MESSAGE("peak: none " << none << ", every=3 " << halves << ", blocks " << blocks);
  CHECK(blocks < halves);
  CHECK(halves < none);
}

TEST_CASE("a segment of more parts than the model has is refused with the most it can have") {
  CHECK_THROWS_WITH_AS(trained_weights(with(gpt, {{"recompute", "every=4"}})),
                       "--recompute every=4: the gpt has only 3 blocks: use every=3 or less", UsageError);
  CHECK_THROWS_WITH_AS(trained_weights(with(mlp, {{"recompute", "every=5"}})),
                       "--recompute every=5: the mlp has only 3 hidden layers: use every=3 or less", UsageError);
  for (const char* wrong : {"every=0", "every=", "block", "budget=", "budget=-1", "every=1.5"}) {
    INFO(wrong);
    CHECK_THROWS_WITH_AS(Training(with(gpt, {{"recompute", wrong}})),
                         doctest::Contains("needs none, blocks, every=K (K blocks or hidden layers at a time) or "
                                           "budget=SIZE, such as budget=512KiB"),
                         UsageError);
  }
}

TEST_CASE("gradcheck passes, and the tape is drawn, with --recompute") {
  const std::vector<std::string> model = {"--data",   "task:copy:length=4,symbols=9",
                                          "--layers", "2",
                                          "--heads",  "2",
                                          "--width",  "16",
                                          "--json",   "--dropout",
                                          "0.2",      "--recompute",
                                          "blocks"};
  for (const char* command : {"gradcheck", "graph"}) {
    std::vector<std::string> words = model;
    words.insert(words.begin(), command);
    const Outcome outcome = tapedeck::test::tapedeck(words);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == exit_done);
    if (std::string(command) == "gradcheck") continue;
    size_t parts = 0;
    const Json document = outcome.json();
    for (const Json& node : document["nodes"]) parts += node["op"] == "recompute";
    CHECK(parts == 2);
  }
}

// Fault: a run that goes on with less memory is another run, or is refused for an option that changes no result.
TEST_CASE("a run goes on under another --recompute, as often as one likes, to the weights of the run that had none") {
  const TemporaryFolder folder;
  const auto run = [&](const std::vector<std::string>& words) {
    const Outcome outcome = tapedeck::test::tapedeck(words);
    INFO(outcome.err);
    CHECK(outcome.code == exit_done);
    return outcome;
  };
  const std::vector<std::string> begin = {"train",    "--data",      "task:copy:length=5,symbols=9",
                                          "--width",  "16",          "--heads",
                                          "2",        "--dropout",   "0.3",
                                          "--batch",  "4",           "--schedule",
                                          "constant", "--quiet",     "--threads",
                                          "1",        "--precision", "fp16",
                                          "--out"};
  const auto words = [&](const char* name, const char* steps) {
    std::vector<std::string> all = begin;
    all.insert(all.end(), {folder / name, "--steps", steps});
    return all;
  };
  run(words("straight", "8"));
  run(words("changed", "2"));
  const char* const policies[] = {"blocks", "every=2", "budget=40KiB", "none"};
  for (size_t i = 0; i < 4; ++i) {
    const Outcome on = run({"train", "--resume", folder / "changed", "--steps", std::to_string(i == 3 ? 8 : 3 + i),
                            "--recompute", policies[i]});
    CHECK(read_json(folder / "changed/config.json")["recompute"]["value"] ==
          (i == 2 ? std::string("budget=40960") : std::string(policies[i])));
    if (i == 2) CHECK(contains(on.err, "saved for backward instead of"));
  }
  CHECK(
      contains(read_file(folder / "changed/resumes.jsonl"), "\"recompute\":{\"before\":\"none\",\"now\":\"blocks\"}"));
  CHECK(read_file(folder / "changed/model.safetensors") == read_file(folder / "straight/model.safetensors"));
  const Outcome refused =
      tapedeck::test::tapedeck({"train", "--resume", folder / "changed", "--steps", "9", "--recompute", "every=3"});
  CHECK(refused.code == exit_usage);
  CHECK(contains(refused.err, "the gpt has only 2 blocks"));
  CHECK(read_json(folder / "changed/config.json")["recompute"]["value"] == "none");  // the folder is as it was
}
