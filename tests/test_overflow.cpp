// Whole runs in fp16 whose steps overflow: once, and from some step on.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "apps/checkpoint.h"
#include "engine/safetensors.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"
#include "tests/training.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

constexpr int64_t rows = 40, batch = 4, features = 2;

// Rows whose numbers are missing in some of the batches that training asks for.
class Spoilt : public Records {
 public:
  Spoilt(int64_t first, int64_t last) : first_(first), last_(last) {}
  int64_t count() const override { return rows; }
  void read(std::span<const int32_t> which, float* out) const override {
    const bool spoilt = std::ssize(which) == batch && ++asked_ >= first_ && asked_ <= last_;  // else a score's
    for (const int32_t row : which)
      for (int64_t j = 0; j < features; ++j) *out++ = spoilt ? NAN : static_cast<float>((row % 3) - j) / 2;
  }
  uint64_t content_hash() const override { return 7; }

 private:
  const int64_t first_, last_;  // batches, counted from 1
  mutable int64_t asked_ = 0;
};

Dataset spoilt(int64_t first, int64_t last) {
  Dataset data{.name = "spoilt", .shape = "2", .features = features, .classes = 3};
  data.records = std::make_shared<Spoilt>(first, last);
  for (int32_t row = 0; row < rows; ++row) {
    data.labels.push_back(row % 3);
    if (row < 36) data.train.push_back(row);
  }
  data.validation = {36, 37}, data.test = {38, 39};
  return data;
}

// A run on the CPU or another device, whose batches first … last are spoilt; with a folder where it is told one.
struct Spoiling {
  Spoiling(Device device, int64_t first, int64_t last, int64_t steps, std::vector<Setting> more = {},
           const std::string& out = "")
      : config(configure("train", settings(device, steps, std::move(more), out))),
        problem(spoilt(first, last), false, prepare_machine(config), DType::f16),
        folder(out.empty() ? nullptr : std::make_unique<RunFolder>(config, device)),
        progress(log, false, true),
        trainer(config, problem, device, clock, progress, folder.get()),
        summary(trainer.run()) {}

  static std::vector<Setting> settings(Device device, int64_t steps, std::vector<Setting> more,
                                       const std::string& out) {
    more.insert(more.end(), {{"device", name(device)},
                             {"data", "blobs"},
                             {"hidden", "8"},
                             {"precision", "fp16"},
                             {"batch", std::to_string(batch)},
                             {"steps", std::to_string(steps)},
                             {"eval-every", "100000"},
                             {"log-every", "1"},
                             {"checkpoint-every", "2"},
                             {"workers", "0"},
                             {"threads", "1"}});
    if (!out.empty()) more.push_back({"out", out});
    return more;
  }
  std::vector<double> weights() const { return trainer.learner().parameters.values().doubles(); }
  std::vector<std::vector<double>> moments() const {
    std::vector<std::vector<double>> all;
    for (const auto& [name, moment] : trainer.learner().optimizer.moments()) all.push_back(moment.doubles());
    return all;
  }
  StepState state() const { return trainer.learner().state.read(); }

  const Threads as_before{threads()};
  const Config config;
  const Problem problem;
  const std::unique_ptr<RunFolder> folder;
  TrainingClock clock;
  std::ostringstream log;
  Progress progress;
  Trainer trainer;
  const Summary summary;
};

}  // namespace

// Fault: the rate went on in a step that was skipped, or trainers guessed from a changed scale whether it was.
TEST_CASE("one overflow in a run: the scale halves once, nothing else moves, and the next step has that step's rate") {
  const TemporaryFolder folder;
  for (const Device device : all_devices()) {
    INFO(std::string(name(device)));
    const std::string out = folder / name(device);
    const Spoiling run(device, 3, 3, 6, {{"schedule", "linear"}}, out);
    CHECK(run.summary.status == "done");
    CHECK(run.summary.loss_scale.skipped == 1);
    CHECK(run.summary.loss_scale.backoffs == 1);
    CHECK(run.summary.loss_scale.final == 32768);
    const std::vector<double> rates = curve(out, "lr"), scales = curve(out, "loss_scale"),
                              skipped = curve(out, "skipped");
    REQUIRE(rates.size() == 6);
    for (size_t i = 1; i < 6; ++i) {
      if (i == 3)
        CHECK(rates[i] == rates[i - 1]);
      else
        CHECK(rates[i] < rates[i - 1]);
    }
    CHECK(scales == std::vector<double>{65536, 65536, 65536, 32768, 32768, 32768});
    CHECK(skipped == std::vector<double>{0, 0, 1, 1, 1, 1});

    const std::vector<Setting> constant = {{"schedule", "constant"}};
    const Spoiling before(device, 3, 3, 2, constant), hit(device, 3, 3, 3, constant), after(device, 3, 3, 4, constant);
    CHECK(hit.weights() == before.weights());
    CHECK(hit.moments() == before.moments());
    CHECK(hit.state().updates == 2);
    CHECK(hit.state().scaler.good == 0);
    CHECK(after.state().updates == 3);
    CHECK(after.weights() != hit.weights());
    CHECK(after.moments() != hit.moments());
  }
}

TEST_CASE("two thousand good steps in a row double the scale once, counted from a skipped step on") {
  for (const int64_t steps : {2099, 2100}) {  // the 100th is skipped
    const Spoiling run(Device::cpu, 100, 100, steps, {{"schedule", "constant"}});
    CHECK(run.summary.loss_scale.skipped == 1);
    CHECK(run.summary.loss_scale.growths == (steps == 2100));
    CHECK(run.summary.loss_scale.final == (steps == 2100 ? 65536 : 32768));
    CHECK(run.state().scaler.good == (steps == 2100 ? 0 : 1999));
  }
}

// Fault: with a loss that is NaN for good, the scale fell to its minimum and the job skipped steps for ever.
TEST_CASE("a loss that is NaN from a step on ends the run after thirty skips, with scale, tensor and finite weights") {
  const TemporaryFolder folder;
  for (const Device device : all_devices())
    for (const char* floor : {"1e-4", "100", "0"}) {
      INFO(std::string(name(device)) << ", floor " << std::string(floor));
      const bool saves = floor == std::string("1e-4");  // each save is forced to the disk
      const std::string out = saves ? folder / name(device) : "";
      const Spoiling run(device, 5, 100000, 200, {{"loss-scale-floor", floor}, {"schedule", "constant"}}, out);
      INFO(run.trainer.reason());
      CHECK(run.summary.status == "diverged");
      CHECK(run.summary.steps == 34);
      CHECK(run.summary.loss_scale.skipped == 30);
      const double least = std::stod(floor), scale = run.state().scaler.scale;
      CHECK(scale > 0);
      CHECK(scale >= least);
      CHECK((scale < 2 * least || scale == 65536 * std::pow(0.5, 30)));
      CHECK(contains(run.trainer.reason(), "persistent overflow at step 34: 30 steps in a row were skipped"));
      CHECK(contains(run.trainer.reason(), "the loss scale is " + text("{}", static_cast<float>(scale))));
      CHECK(
          contains(run.trainer.reason(), "the first tensor that is not finite is the output of linear at mlp.hidden0"));
      const Spoiling good(device, 5, 100000, 4, {{"schedule", "constant"}});
      CHECK(run.weights() == good.weights());  // those of the last step that was none of the thirty
      if (!saves) continue;
      std::vector<std::string> complaints;
      const auto last = Checkpoints(out).newest(complaints);
      REQUIRE(last);
      CHECK(complaints.empty());
      for (const auto& [name, tensor] : from_safetensors(last->files.at("weights.safetensors"), "weights"))
        CHECK(all_finite(tensor));
    }
}

TEST_CASE("a fixed loss scale that is too large is not said to have moved, and the advice is another scale") {
  for (const Device device : all_devices())
    for (const char* recompute : {"none", "blocks"}) {
      INFO(std::string(name(device)) << ", recompute " << recompute);
      const Spoiling run(device, 0, 0, 40, {{"loss-scale", "1e30"}, {"recompute", recompute}});
      const std::string reason = run.trainer.reason();
      INFO(reason);
      CHECK(run.summary.status == "diverged");
      CHECK(contains(reason, "30 steps in a row were skipped, and the loss scale stays at 1e30;"));
      CHECK(contains(reason, "is the output gradient of "));
      CHECK(contains(reason, "Try --loss-scale dynamic, "));
      CHECK_FALSE(contains(reason, "by now"));
    }
}
