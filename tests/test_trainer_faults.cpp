// Runs that go wrong: divergence, too little memory, batches larger than the data, targets that are not reached.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "data/loader.h"
#include "engine/backend.h"
#include "engine/safetensors.h"
#include "tests/program.h"
#include "tests/shard_files.h"
#include "tests/test_data_folder.h"
#include "tests/training.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

namespace fs = std::filesystem;

Outcome train(std::vector<std::string> options, const std::string& out) {
  options.insert(options.begin(), "train");
  options.insert(options.end(), {"--out", out, "--quiet", "--threads", "1"});
  return tapedeck::test::tapedeck(options);
}

bool all_finite(const std::string& file) {
  for (const auto& [name, tensor] : from_safetensors(read_file(file), file))
    for (const double x : tensor.doubles())
      if (!std::isfinite(x)) return false;
  return true;
}

}  // namespace

// Fault: a gradient that is not finite was clipped to nothing or spread NaN to all weights, which were then saved.
TEST_CASE("a gradient that is not finite stops the run, and no weight takes part in it") {
  const TemporaryFolder folder;
  std::vector<std::string> options = {"--data", "blobs", "--loss", "mse",        "--optimizer", "sgd",
                                      "--lr",   "1e30",  "--json", "--schedule", "constant"};
  for (const bool clipped : {false, true}) {
    if (clipped) options.insert(options.end(), {"--clip", "1e20"});
    const std::string out = folder / (clipped ? "clipped" : "plain"), before = out + "-before";
    const Outcome diverged = train(
        [&] {
          auto longer = options;
          longer.insert(longer.end(), {"--steps", "10"});
          return longer;
        }(),
        out);
    INFO(diverged.err);
    CHECK(diverged.code == exit_diverged);
    CHECK(contains(diverged.err, "step 2"));
    CHECK(contains(diverged.err, "of mlp."));  // a parameter
    CHECK(contains(diverged.err, "--lr"));
    const Json summary = diverged.json();
    CHECK(summary["status"] == "diverged");
    CHECK(summary["steps"] == 2);
    CHECK(summary["final"]["test_loss"].is_null());
    CHECK(all_finite(out + "/model.safetensors"));

    // The model is what the step before left.
    options.insert(options.end(), {"--steps", "1"});
    CHECK(train(options, before).code == exit_done);
    options.resize(options.size() - 2);
    CHECK(read_file(out + "/model.safetensors") == read_file(before + "/model.safetensors"));

    // Every line is strict JSON, and the last one is marked.
    std::ifstream lines(out + "/metrics.jsonl");
    Json last;
    for (std::string line; std::getline(lines, line);) last = Json::parse(line);
    CHECK(last["finite"] == false);
    CHECK(last["step"] == 2);
  }
}

// Fault: weights that overflow in a step with a finite gradient were saved over a good model.
TEST_CASE("weights that overflow are never saved") {
  const TemporaryFolder folder;
  const Outcome outcome = train({"--data", "blobs", "--loss", "mse", "--optimizer", "sgd", "--lr", "1e38", "--schedule",
                                 "constant", "--steps", "1"},
                                folder / "run");
  INFO(outcome.err);
  CHECK(outcome.code == exit_diverged);
  CHECK(contains(outcome.err, "step 1"));
  CHECK(contains(outcome.err, "mlp."));
  CHECK_FALSE(fs::exists(folder / "run/model.safetensors"));
  CHECK_FALSE(fs::exists(folder / "run/best.safetensors"));
  CHECK(read_json(folder / "run/summary.json")["status"] == "diverged");
}

// Fault: one element that is inf or NaN in an otherwise good gradient.
TEST_CASE("one infinite or missing number in the gradient leaves weights, moments and step count alone") {
  for (const char* kind : {"sgd", "momentum", "adam", "adamw", "lars", "lamb"})
    for (const float bad : {INFINITY, NAN}) {
      INFO(kind << " with " << bad);
      Training training({{"data", "blobs"}, {"hidden", "8"}, {"optimizer", kind}, {"clip", "1"}, {"steps", "1"}});
      Learner clean(training.config, training.problem, 1, training.device, training.dtype),
          hit(training.config, training.problem, 1, training.device, training.dtype);
      const Inputs inputs = training.problem.load(std::span(training.problem.data().train).first(16));
      const DeviceValue<StepRecord> record(training.device);
      const auto step = [&](Learner& learner, bool spoil) {
        learner.parameters.forget_gradients();
        learn(learner, training.problem, inputs, {true, 1, 0}, 1);
        if (spoil) learner.parameters.all()[1]->value.grad->sum.ptr<float>()[3] = bad;
        learner.optimizer.advance({.schedule = {.base = 0.1}, .records = record.ptr()});
        return record.read().norm;
      };
      CHECK(std::isfinite(step(clean, false)));
      CHECK(std::isfinite(step(hit, false)));
      const std::vector<double> before = hit.parameters.values().doubles();
      CHECK_FALSE(std::isfinite(step(hit, true)));
      CHECK(hit.parameters.path_at(record.read().broken) == hit.parameters.all()[1]->path);
      CHECK(hit.parameters.values().doubles() == before);
      CHECK(hit.optimizer.steps() == 1);
      step(clean, false);
      step(hit, false);  // as if the spoilt step had never been
      CHECK(hit.parameters.values().doubles() == clean.parameters.values().doubles());
      CHECK(clean.parameters.values().doubles() != before);
    }
}

// Fault: a batch larger than the data gave epochs without a step, reported as loss 0.
TEST_CASE("a batch larger than the training part is refused with both numbers, before anything is written") {
  const TemporaryFolder folder;
  const Outcome outcome = train({"--data", "digits", "--batch", "2000"}, folder / "run");
  INFO(outcome.err);
  CHECK(outcome.code == exit_usage);
  CHECK(contains(outcome.err, "2000"));
  CHECK(contains(outcome.err, "1078"));
  CHECK_FALSE(fs::exists(folder / "run"));
  CHECK(train({"--data", "digits", "--hidden", "4", "--batch", "1078", "--epochs", "1"}, folder / "run").code ==
        exit_done);
}

// Fault: --repeat removed every folder of --out whose name began with seed-, asked by --force or not.
// Fault: a refused --graph on had already taken away the finished run that --force was to replace.
TEST_CASE("a run that is refused or fails at its start leaves the one it was to replace") {
  const TemporaryFolder folder;
  const std::vector<std::string> run = {"train", "--data",  "blobs", "--hidden",     "4",      "--steps",
                                        "5",     "--quiet", "--out", folder / "run", "--force"};
  REQUIRE(tapedeck::test::tapedeck(run).code == exit_done);
  const std::string model = read_file(folder / "run/model.safetensors");
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--graph", "on"}, {"--memory-limit", "1KiB"}, {"--repeat", "2", "--graph", "on"}}) {
    std::vector<std::string> words = run;
    words.insert(words.end(), more.begin(), more.end());
    CHECK(tapedeck::test::tapedeck(words).code != exit_done);
    CHECK(read_file(folder / "run/model.safetensors") == model);
  }
}

// Fault: after the last step there was no memory to score a thousand examples at once, and the training was lost.
TEST_CASE("a run that could train is scored in smaller pieces where memory is short") {
  const TemporaryFolder folder;
  const auto train = [&](const std::string& limit) {
    return tapedeck::test::tapedeck({"train", "--data", "digits", "--hidden", "4", "--batch", "4", "--steps", "5",
                                     "--quiet", "--json", "--memory-limit", limit, "--out", folder / limit});
  };
  const Outcome roomy = train("1GiB"), tight = train("40KiB");
  REQUIRE(tight.code == exit_done);
  CHECK(tight.json()["final"]["validation_loss"].get<double>() ==
        doctest::Approx(roomy.json()["final"]["validation_loss"].get<double>()).epsilon(1e-6));
  CHECK(tight.json()["final"]["test_accuracy"] == roomy.json()["final"]["test_accuracy"]);
}

// Fault: the host was some steps ahead of the device when a batch could not be read, and what those steps came to was
// never looked at: their lines were lost, and so was a divergence among them.
TEST_CASE("a batch that cannot be read ends a run only when the steps before it are on record") {
  const TemporaryFolder folder;
  std::string shard = read_file(large_shard(folder));
  shard[shard.size() / 2] ^= 1;
  std::ofstream(folder / "damaged.shard", std::ios::binary) << shard;
  const auto lines = [&](const std::string& device, const std::string& lr) {
    const std::string out = folder / (device + lr);
    const Outcome outcome =
        train({"--data", "shard:" + (folder / "damaged.shard"), "--hidden", "2", "--batch", "2", "--steps", "400",
               "--log-every", "1", "--optimizer", "sgd", "--lr", lr, "--device", device, "--workers", "0"},
              out);
    INFO(outcome.err);
    CHECK(outcome.code == (lr == "0.01" ? exit_failed : exit_diverged));
    return curve(out, "step").size();
  };
  const size_t on_cpu = lines("cpu", "0.01");
  CHECK(on_cpu > 8);
  CHECK(lines("emulated", "0.01") == on_cpu);
}

TEST_CASE("repeats leave alone what else is in their folder") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "out/seed-data");
  std::ofstream(folder / "out/seed-data/mine.txt") << "mine";
  const std::vector<std::string> options = {"--data", "blobs", "--hidden", "4", "--steps", "2", "--repeat", "2"};
  CHECK(train(options, folder / "out").code == exit_done);
  CHECK(fs::exists(folder / "out/seed-2/model.safetensors"));
  CHECK(tapedeck::test::tapedeck({"evaluate", folder / "out"}).code == exit_failed);
  const Outcome forced = train({"--data", "blobs", "--hidden", "4", "--steps", "2", "--force"}, folder / "out");
  CHECK(forced.code == exit_done);
  CHECK_FALSE(fs::exists(folder / "out/seed-2"));
  CHECK(read_file(folder / "out/seed-data/mine.txt") == "mine");
}

// Fault: repeats with one fixed seed are identical, so their spread says nothing.
TEST_CASE("every repeat has a seed of its own, listed, and a curve of its own") {
  const TemporaryFolder folder;
  const Outcome outcome = train({"--data", "blobs", "--hidden", "8", "--steps", "30", "--eval-every", "10", "--target",
                                 "accuracy=1", "--repeat", "3", "--seed", "5", "--log-every", "1", "--json"},
                                folder / "runs");
  INFO(outcome.err);
  CHECK(outcome.code == exit_target_not_reached);
  const Json document = outcome.json();
  REQUIRE(document["runs"].size() == 3);
  std::vector<std::vector<double>> curves;
  for (int i = 0; i < 3; ++i) {
    const std::string seed = std::to_string(5 + i);
    CHECK(document["runs"][i]["seed"] == 5 + i);
    CHECK(document["runs"][i]["status"] == "target not reached");
    CHECK(document["runs"][i]["target"]["reached"] == false);
    CHECK(document["runs"][i]["target"]["seconds"].is_null());
    curves.push_back(curve(folder / "runs/seed-" + seed, "train_loss"));
    CHECK(curves.back().size() == 30);
  }
  CHECK(curves[0] != curves[1]);
  CHECK(curves[0] != curves[2]);
  CHECK(curves[1] != curves[2]);

  // Runs that missed count as infinite: no median, no expected time.
  const Json& seconds = document["seconds_to_target"];
  CHECK(seconds["reached"] == 0);
  CHECK(seconds["n"] == 3);
  CHECK(seconds["median"].is_null());
  CHECK(seconds["expected_running_time"].is_null());

  const std::string text = train({"--data", "blobs", "--hidden", "8", "--steps", "5", "--target", "accuracy=1",
                                  "--repeat", "2", "--seed", "5"},
                                 folder / "text")
                               .out;
  INFO(text);
  CHECK(contains(text, "0 of 2 runs reached the target"));
  CHECK(contains(text, "not reached"));
  CHECK(contains(
      train({"--data", "blobs", "--hidden", "8", "--steps", "5", "--target", "accuracy=1"}, folder / "one").out,
      "did not reach validation accuracy"));
}

// Fault: the share of whole answers was called test accuracy.
TEST_CASE("repeats name what they score") {
  const TemporaryFolder folder;
  const std::vector<std::string> tiny = {"--layers", "1", "--width", "8", "--steps", "2", "--repeat", "2"};
  const auto out = [&](const std::string& data, const char* name) {
    std::vector<std::string> words = {"--data", data};
    words.insert(words.end(), tiny.begin(), tiny.end());
    return train(words, folder / name).out;
  };
  CHECK(contains(out("task:sort:length=4", "task"), "test exact match: median "));
  std::ofstream text(folder / "text.txt");
  for (int i = 0; i < 1000; ++i) text << "a b c";
  text.close();
  CHECK(contains(out("text:" + (folder / "text.txt"), "text"), "validation token accuracy: median "));
}

// Fault: the seed reached the initial weights but not the order of the examples or the dropout masks.
TEST_CASE("the seed alone changes initial weights, order and masks") {
  Training training({{"data", "blobs"}, {"hidden", "64"}, {"dropout", "0.5"}, {"steps", "1"}});
  const auto learner = [&](uint64_t seed) {
    return std::make_unique<Learner>(training.config, training.problem, seed, training.device, training.dtype);
  };
  const auto one = learner(1), other = learner(2);
  CHECK(one->parameters.values().doubles() == learner(1)->parameters.values().doubles());
  CHECK(difference(one->parameters.values().doubles(), other->parameters.values().doubles()) > 0.1);

  const std::vector<int32_t>& rows = training.problem.data().train;
  CHECK(epoch_order(rows, 1, 0) == epoch_order(rows, 1, 0));
  CHECK(epoch_order(rows, 1, 0) != epoch_order(rows, 2, 0));

  // The same weights and examples, so that only the masks can differ.
  const Inputs inputs = training.problem.load(std::span(rows).first(8));
  const auto outputs = [&](uint64_t seed, uint64_t step) {
    return (*one->model)(inputs.x, {true, seed, step}).doubles();
  };
  CHECK(outputs(1, 0) == outputs(1, 0));
  CHECK(outputs(1, 0) != outputs(2, 0));
  CHECK(outputs(1, 0) != outputs(1, 1));
}

TEST_CASE("too little memory within a step names who keeps the most of it") {
  const TemporaryFolder folder;
  const Outcome outcome = train({"--data", "digits", "--hidden", "500,500,500", "--optimizer", "sgd", "--batch", "1000",
                                 "--memory-limit", "8MiB"},
                                folder / "run");
  INFO(outcome.err);
  CHECK(outcome.code == exit_out_of_memory);
  CHECK(contains(outcome.err, "; saved for backward: "));
  CHECK(contains(outcome.err, " KiB by linear in mlp.hidden*"));
}

// Fault: out of memory was recognised by the wording of its message, and left half a model behind.
TEST_CASE("too little memory has its own error type and exit code, says how much, and leaves no model") {
  const TemporaryFolder folder;
  const std::vector<std::vector<std::string>> lines = {
      {"--data", "digits", "--hidden", "200000", "--memory-limit", "64MiB"},  // the parameters do not fit
      {"--data", "digits", "--hidden", "20000", "--batch", "1000", "--memory-limit", "40MiB"},  // a step does not
  };
  for (std::vector<std::string> options : lines) {
    const std::string limit = options.back().substr(0, 2), out = folder / ("run" + limit);
    const Outcome outcome = train(options, out);
    INFO(outcome.err);
    CHECK(outcome.code == exit_out_of_memory);
    CHECK(contains(outcome.err, "wanted"));
    CHECK(contains(outcome.err, "of " + limit + ".0 MiB are free"));
    CHECK(contains(outcome.err, "--batch"));
    CHECK_FALSE(fs::exists(out));
  }
  for (const char* hidden : {"2147483647", "2147483647,2147483647"}) {  // more than the machine has, than 63 bits hold
    const Outcome outcome = train({"--data", "digits", "--hidden", hidden}, folder / "huge");
    INFO(outcome.err);
    CHECK(outcome.code == exit_out_of_memory);
    CHECK_FALSE(fs::exists(folder / "huge/model.safetensors"));
    fs::remove_all(folder / "huge");
  }
  CHECK_THROWS_AS(Tensor::empty({int64_t{1} << 50}, DType::f32, Device::cpu), OutOfMemory);

  // Afterwards everything that was taken has been given back.
  CHECK(train({"--data", "blobs", "--hidden", "8", "--steps", "3"}, folder / "after").code == exit_done);
}
