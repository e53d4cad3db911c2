// A training run on a device with lanes: as on the CPU within rounding, and captured and replayed exactly as plain.
#include <cmath>
#include <cstdio>

#include "engine/emulation/emulated_device.h"
#include "tests/gpu.h"
#include "tests/training.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using test::Training;

namespace {

struct Run {
  std::vector<double> weights, losses;
  Summary summary;
};

using Settings = std::vector<Setting>;

Run run(Settings settings, const Settings& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  Training training(settings);
  Run out;
  out.summary = training.trainer.run();
  out.weights = training.weights();
  for (const LossSum& loss : training.trainer.state().losses) out.losses.push_back(loss.mean());
  return out;
}

// Everything that changes from step to step: a warm-up and a decay, dropout, Adam's corrections, clipping, the epoch's
// short last batch, a window over several batches.
const Settings eventful = {{"data", "digits"}, {"hidden", "8"}, {"dropout", "0.3"},  {"optimizer", "adamw"},
                           {"lr", "0.02"},     {"warmup", "3"}, {"clip", "0.5"},     {"schedule", "cosine"},
                           {"batch", "250"},   {"seed", "3"},   {"eval-every", "50"}};

void expect_losses_of_cpu(const char* device) {  // digits, replayed
  const Settings digits = {{"data", "digits"}, {"hidden", "24"},     {"batch", "64"},
                           {"steps", "40"},    {"eval-every", "40"}, {"lr", "0.01"}};
  const Run cpu = run(digits, {{"device", "cpu"}}), here = run(digits, {{"device", device}, {"graph", "on"}});
  REQUIRE(cpu.losses.size() == here.losses.size());
  for (size_t i = 0; i < cpu.losses.size(); ++i)
    CHECK(here.losses[i] == doctest::Approx(cpu.losses[i]).epsilon(1e-4));  // f32 sums in another order, 40 steps
  CHECK(cpu.losses.back() < 0.8 * cpu.losses.front());
  CHECK(*here.summary.final.validation_loss == doctest::Approx(*cpu.summary.final.validation_loss).epsilon(1e-4));
}

}  // namespace

// Fault: a captured step goes on with the learning rate, dropout mask, bias correction or batch of the step that was
// captured.
TEST_CASE("ten replayed steps are bitwise ten plain ones, with schedule, dropout, accumulation and clipping") {
  for (const char* accumulate : {"1", "3"})
    for (const char* limit : {"4GiB", "440KB"})  // data that lives on the device, and data that is copied there
      for (const emulation::Mode mode : {emulation::Mode::eager, emulation::Mode::lazy}) {
        INFO("accumulate " << accumulate << ", memory " << limit << ", lazy " << (mode == emulation::Mode::lazy));
        const emulation::UseMode use(mode);
        const Settings settings = {
            {"device", "emulated"}, {"accumulate", accumulate}, {"steps", "13"}, {"memory-limit", limit}};
        Settings plain = settings, replayed = settings;
        plain.push_back({"graph", "off"});
        replayed.push_back({"graph", "on"});
        const Run a = run(eventful, plain), b = run(eventful, replayed);
        CHECK(a.weights == b.weights);
        CHECK(a.losses == b.losses);
        CHECK(a.losses.size() == 13);
        CHECK(a.losses[12] != a.losses[11]);
      }
}

TEST_CASE("on a GPU: replayed steps are bitwise plain ones, and the MLP has the losses of the cpu") {
  if (test::no_gpu()) return;
  const Run plain = run(eventful, {{"device", "cuda"}, {"graph", "off"}, {"steps", "13"}, {"accumulate", "3"}});
  const Run replayed = run(eventful, {{"device", "cuda"}, {"graph", "on"}, {"steps", "13"}, {"accumulate", "3"}});
  CHECK(plain.weights == replayed.weights);
  CHECK(plain.losses == replayed.losses);
  expect_losses_of_cpu("cuda");
}

TEST_CASE("the MLP trains on digits on the emulated device, replayed, to the losses of the cpu within rounding") {
  expect_losses_of_cpu("emulated");
}

// Fault: a run whose host is some steps ahead of the device reports a divergence late, with the weights of later steps.
TEST_CASE("a run that diverges on a device names the step and the parameter as on the cpu, and keeps the weights") {
  const Settings wild = {{"data", "blobs"}, {"hidden", "8"}, {"optimizer", "sgd"}, {"lr", "1e18"},
                         {"steps", "60"},   {"batch", "64"}, {"eval-every", "60"}};
  Settings on_cpu = wild, on_device = wild;
  on_cpu.push_back({"device", "cpu"});
  on_device.push_back({"device", "emulated"}), on_device.push_back({"graph", "on"});
  Training cpu(on_cpu), emulated(on_device);
  const Summary a = cpu.trainer.run(), b = emulated.trainer.run();
  CHECK(a.status == "diverged");
  CHECK(b.status == "diverged");
  CHECK(a.steps == b.steps);
  CHECK(a.examples == b.examples);
  CHECK(cpu.trainer.reason().substr(0, 40) == emulated.trainer.reason().substr(0, 40));
  for (const double w : emulated.weights()) CHECK(std::isfinite(w));
}

TEST_CASE("two steps of a run, captured one after the other, are the same calls with the same arguments") {
  // Nothing of the host is baked into a step: what a replay would repeat is what the next step would ask for.
  if (!emulation::arguments_compare) {
    std::puts("skipped: this compiler cannot clear the bytes between a kernel's arguments (g++ can)");
    return;
  }
  Training training({{"data", "blobs"}, {"device", "emulated"}, {"hidden", "16"}, {"dropout", "0.3"}, {"steps", "9"}});
  const uint64_t seed = 1;
  Learner learner(training.config, training.problem, seed, training.device, training.dtype);
  Feed feed(training.problem, 32, seed, {}, 0, 2, &learner.state.ptr()->cursor);
  const auto capture = [&] {
    feed.next();
    auto graph = backend(training.device).capture([&] {
      learner.parameters.forget_gradients();
      learn(learner, training.problem, feed.inputs(), {true, seed, 0, &learner.state.ptr()->batches}, 1);
      learner.optimizer.advance({.schedule = make_schedule(training.config, training.problem)});
    });
    return std::unique_ptr<emulation::StreamGraph>(dynamic_cast<emulation::StreamGraph*>(graph.release()));
  };
  const auto first = capture(), second = capture();
  CHECK(first->nodes() > 20);
  CHECK(first->difference(*second) == "");
}

TEST_CASE("--graph on and --tf32 are refused where a device knows neither") {
  CHECK_THROWS_WITH_AS(Training({{"data", "blobs"}, {"device", "cpu"}, {"tf32", "true"}}),
                       "--tf32: cpu multiplies in fp32 alone: leave it out, or use --device cuda", UsageError);
  CHECK_THROWS_WITH_AS(run({{"data", "blobs"}, {"steps", "1"}}, {{"device", "cpu"}, {"graph", "on"}}),
                       "--graph on: cpu has no graphs to capture: use --graph off, or another --device", UsageError);
}
