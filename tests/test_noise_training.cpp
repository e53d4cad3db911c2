// --noise-scale in whole runs: however a step is cut, on every device, replayed, resumed; and what it says where there
// is nothing to compare.
#include <cmath>
#include <fstream>

#include "apps/noise_meter.h"
#include "engine/emulation/emulated_device.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"
#include "tests/training.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

// 1,078 examples: an epoch is four steps of 256, and one of 54.
const Settings mlp = {{"data", "digits"}, {"hidden", "12"},       {"batch", "256"},       {"lr", "0.01"},
                      {"steps", "30"},    {"eval-every", "1000"}, {"noise-scale", "true"}};
const Settings gpt = {{"data", "task:copy:length=4,symbols=8"},
                      {"layers", "1"},
                      {"heads", "2"},
                      {"width", "8"},
                      {"batch", "8"},
                      {"accumulate", "2"},
                      {"lr", "0.003"},
                      {"warmup", "0"},
                      {"steps", "1000"},
                      {"eval-every", "1000"},
                      {"noise-scale", "true"}};

struct Run {
  // Stopped after so many batches, which saves the time to score.
  explicit Run(const Settings& settings, int64_t batches = INT64_MAX)
      : training(settings, nullptr, [batches, asked = int64_t{0}]() mutable { return asked++ >= batches; }),
        summary(training.trainer.run()) {}
  NoiseEstimate estimate() const { return *training.trainer.state().noise->average.estimate(); }
  std::string all() const { return to_json(*training.trainer.state().noise).dump(); }  // every bit of it
  std::vector<double> losses() const {
    std::vector<double> out;
    for (const LossSum& loss : training.trainer.state().losses) out.push_back(loss.mean());
    return out;
  }
  Training training;
  Summary summary;
};

void expect_same_losses(const Run& a, const Run& b, double epsilon) {
  const std::vector<double> x = a.losses(), y = b.losses();
  REQUIRE(x.size() == y.size());
  REQUIRE(!x.empty());
  for (size_t i = 0; i < x.size(); ++i) CHECK(y[i] == doctest::Approx(x[i]).epsilon(epsilon));
}

// Either lies within the interval of the other.
void expect_within_interval(const NoiseEstimate& a, const NoiseEstimate& b) {
  REQUIRE(a.scale);
  REQUIRE(b.scale);
  INFO(*a.scale << " [" << *a.low << ", " << *a.high << "] and " << *b.scale << " [" << *b.low << ", " << *b.high
                << "]");
  CHECK(*a.low <= *b.scale);
  CHECK(*b.scale <= *a.high);
  CHECK(*b.low <= *a.scale);
  CHECK(*a.scale <= *b.high);
}

}  // namespace

TEST_CASE("noise scale: B = 256 as 1 x 256, 4 x 64 and 16 x 16 has one loss curve and one noise scale") {
  const Run whole(mlp);
  REQUIRE(whole.estimate().scale);
  CHECK(whole.summary.noise_scale->state == "resolved");
  CHECK(whole.summary.noise_scale->how == "per example");
  CHECK(whole.summary.noise_scale->samples == 30);
  CHECK(whole.summary.noise_scale->left_out == 0);
  for (const Settings& pieces :
       {Settings{{"batch", "64"}, {"accumulate", "4"}}, Settings{{"batch", "16"}, {"accumulate", "16"}}}) {
    const Run cut(with(mlp, pieces));
    INFO(pieces[1].value << " x " << pieces[0].value);
    expect_same_losses(whole, cut, 1e-4);
    const NoiseEstimate a = whole.estimate(), b = cut.estimate();
    CHECK(*b.scale == doctest::Approx(*a.scale).epsilon(1e-3));
    CHECK(*b.low == doctest::Approx(*a.low).epsilon(1e-3));
    CHECK(b.square == doctest::Approx(a.square).epsilon(1e-3));
  }
}

TEST_CASE("noise scale: B = 16 as 2 x 8 and 4 x 4 micro-batches of a gpt agrees within the interval") {
  const Run two(gpt, 120), four(with(gpt, {{"batch", "4"}, {"accumulate", "4"}}), 240);
  expect_same_losses(two, four, 1e-4);
  CHECK(two.summary.noise_scale->how == "micro-batches of 8");
  CHECK(four.summary.noise_scale->how == "micro-batches of 4");
  expect_within_interval(two.estimate(), four.estimate());
}

TEST_CASE("noise scale: that of fp16 and bf16 agrees with that of fp32 within the interval") {
  for (const Settings& model : {mlp, gpt}) {
    const Run fp32(model, 120);
    for (const char* precision : {"fp16", "bf16"}) {
      const Run half(with(model, {{"precision", precision}}), 120);
      INFO(std::string(precision));
      expect_within_interval(fp32.estimate(), half.estimate());
      const int64_t skipped = half.summary.loss_scale.skipped.value_or(0);
      CHECK(*half.summary.noise_scale->samples == *half.summary.steps - skipped);
    }
  }
}

TEST_CASE("noise scale: every device agrees, and a replayed step measures to the bit what a plain one does") {
  // 3,224 examples: an epoch ends in a batch of 424, or in a window of one batch of 600 and one of 224.
  const Settings small = with(mlp, {{"data", "blobs"}, {"hidden", "3"}, {"steps", "1000"}});
  for (const Settings& model :
       {with(small, {{"dropout", "0.2"}, {"batch", "700"}}), with(small, {{"batch", "600"}, {"accumulate", "2"}}),
        with(gpt, {{"dropout", "0.2"}})}) {
    const Run cpu(model, 9);
    REQUIRE(cpu.summary.noise_scale->samples >= 4);
    for (const Device device : devices_with_lanes()) {
      const Settings here = with(model, {{"device", name(device)}});
      const Run plain(with(here, {{"graph", "off"}}), 9), replayed(with(here, {{"graph", "on"}}), 9);
      CHECK(plain.all() == replayed.all());
      CHECK(plain.estimate().square == doctest::Approx(cpu.estimate().square).epsilon(1e-3));
      CHECK(plain.estimate().trace == doctest::Approx(cpu.estimate().trace).epsilon(1e-3));
    }
  }
}

// Fault: what is measured is written where something else reads it, or a batch no longer writes but adds.
TEST_CASE("noise scale: measuring changes no bit of the run, and a run without it has null and no line of it") {
  for (const Settings& model : {with(mlp, {{"dropout", "0.2"}}), gpt,
                                with(mlp, {{"precision", "fp16"}, {"batch", "100"}, {"accumulate", "3"}})}) {
    const Run on(model, 20), off(with(model, {{"noise-scale", "false"}}), 20);
    CHECK(on.training.weights() == off.training.weights());
    CHECK(on.losses() == off.losses());
    CHECK(on.summary.noise_scale);
    CHECK_FALSE(off.summary.noise_scale);
    CHECK_FALSE(off.training.trainer.state().noise);
  }
  const TemporaryFolder folder;
  const std::vector<std::string> run = {"train", "--data",       "blobs",       "--hidden", "4",       "--steps", "8",
                                        "--out", folder / "off", "--log-every", "4",        "--quiet", "--json"};
  const Outcome off = test::tapedeck(run);
  CHECK(off.code == exit_done);
  CHECK(off.json()["noise_scale"].is_null());
  CHECK(read_file(folder / "off/metrics.jsonl").find("noise") == std::string::npos);
}

// Fault: a decay that is "added to the gradient", or a clipped gradient, is measured.
TEST_CASE("noise scale: neither weight decay nor clipping is in what is measured") {
  const Settings base = with(mlp, {{"optimizer", "sgd"}, {"steps", "1"}});
  const std::string plain = Run(base).all();
  CHECK(Run(with(base, {{"weight-decay", "0.5"}})).all() == plain);
  CHECK(Run(with(base, {{"clip", "0.001"}})).all() == plain);
  CHECK(Run(with(base, {{"seed", "2"}})).all() != plain);
}

TEST_CASE("noise scale: skipped steps are left out, and steps whose parts are not of one size are counted") {
  NoiseMeter meter(10'000);
  StepRecord record{.norm = std::sqrt(3.0), .went = 1, .squares = 9.0 / 4};
  StepRecord skipped = record;
  skipped.went = 0, skipped.squares = INFINITY;
  meter.add(skipped, 4, 32);
  CHECK_FALSE(meter.average.estimate());
  CHECK(meter.left_out == 0);
  meter.add(record, 4, 32);
  CHECK(meter.average.estimate()->trace == doctest::Approx(64));
  CHECK(meter.average.estimate()->square == doctest::Approx(1 + 64.0 / 10'000));
  meter.add(record, 0, 32);
  meter.add(record, 1, 8);
  record.squares = NAN;
  meter.add(record, 4, 32);
  CHECK(meter.average.estimate()->samples == 1);
  CHECK(meter.left_out == 3);

  // The last step of an epoch has a short batch: an example is an example, but micro-batches then differ.
  const Run examples(with(mlp, {{"batch", "150"}, {"accumulate", "3"}, {"steps", "6"}}));
  CHECK(examples.summary.noise_scale->left_out == 0);
  const TemporaryFolder folder;
  std::string words;
  for (int i = 0; i < 700; ++i) words += static_cast<char>('a' + i * i % 11);
  std::ofstream(folder / "words.txt") << words;
  const Settings cut =
      with(gpt, {{"data", "text:" + (folder / "words.txt")}, {"context", "4"}, {"batch", "70"}, {"accumulate", "3"}});
  const int64_t rows = std::ssize(Training(cut).problem.data().train), full = rows / 210;
  REQUIRE(rows % 70 > 0);
  REQUIRE(full > 0);
  const Run batches(cut, (rows + 69) / 70);
  CHECK(batches.summary.steps == full + 1);
  CHECK(batches.summary.noise_scale->samples == full);
  CHECK(batches.summary.noise_scale->left_out == 1);
}

// B66
TEST_CASE("noise scale: without two batch sizes it is not available, and the run goes on") {
  const TemporaryFolder folder;
  const std::vector<std::string> of_gpt = {"--data", "task:copy:length=4,symbols=8", "--layers", "1", "--width", "8"};
  const std::vector<std::string> of_mlp = {"--data", "blobs", "--hidden", "4", "--batch", "1"};
  int number = 0;
  for (const auto& model : {of_gpt, of_mlp}) {
    const std::string out = folder / std::to_string(number++);
    std::vector<std::string> run = {"train", "--steps", "3", "--log-every", "1", "--noise-scale", "--quiet"};
    run.insert(run.end(), model.begin(), model.end());
    run.insert(run.end(), {"--out", out});
    const Outcome done = test::tapedeck(run);
    CHECK(done.code == exit_done);
    CHECK(done.out.find("gradient noise scale: not available: needs two batch sizes") != std::string::npos);
    const Json noise = read_json(out + "/summary.json")["noise_scale"];
    CHECK(noise["value"].is_null());
    CHECK(noise["how"].is_null());
    CHECK(noise["samples"] == 0);
    CHECK(std::string(noise["state"]).starts_with("not available: needs two batch sizes ("));
    std::istringstream lines(read_file(out + "/metrics.jsonl"));
    int seen = 0;
    for (std::string text; std::getline(lines, text);) {
      const Json line = Json::parse(text);
      if (!line.contains("noise_scale")) continue;
      CHECK(line["noise_scale"].is_null());
      CHECK(line["gradient_square"].is_null());
      ++seen;
    }
    CHECK(seen == 3);
  }
}

TEST_CASE("noise scale: a few steps resolve nothing, and the report says so") {
  const TemporaryFolder folder;
  const Outcome done = test::tapedeck({"train", "--data", "blobs", "--hidden", "4", "--steps", "3", "--noise-scale",
                                       "--quiet", "--out", folder / "run"});
  CHECK(done.code == exit_done);
  CHECK(done.out.find("gradient noise scale: not resolved (|G|²") != std::string::npos);
  const Json noise = read_json(folder / "run/summary.json")["noise_scale"];
  CHECK(noise["state"] == "not resolved");
  CHECK(noise["value"].is_null());
  CHECK(noise["square"].is_number());
  CHECK(noise["samples"] == 3);
}
