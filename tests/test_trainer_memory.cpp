// Memory of a run: flat over its steps, and what --dry-run said it would be.
#include <cmath>

#include "engine/backend.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"
#include "tests/training.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

// A log that looks at the arena whenever a line arrives: at the same place of every hundredth step.
class ArenaWatch : public std::streambuf {
 public:
  struct Seen {
    int64_t buffers;
    size_t bytes;
    bool operator==(const Seen&) const = default;
  };
  std::vector<Seen> seen;

 private:
  int sync() override {
    const Arena::Use use = backend(Device::cpu).arena().use();
    seen.push_back({use.buffers, use.bytes});
    return 0;
  }
  int overflow(int c) override { return c == EOF ? 0 : c; }
  std::streamsize xsputn(const char*, std::streamsize n) override { return n; }
};

// Trains two epochs, and compares what they took with what --dry-run says of them.
void check_forecast(const TemporaryFolder& folder, std::vector<std::string> words) {
  const std::string out = folder / "run";
  words.insert(words.begin(), "train");
  words.insert(words.end(), {"--epochs", "2", "--json", "--quiet", "--threads", "1", "--out", out, "--force"});
  const Outcome measured = tapedeck::test::tapedeck(words);
  words.push_back("--dry-run");
  const std::string model = read_file(out + "/model.safetensors");
  const Outcome forecast = tapedeck::test::tapedeck(words);
  std::string line;
  for (const std::string& word : words) line += word + " ";
  INFO(line << forecast.err << measured.err);
  REQUIRE(measured.code == exit_done);
  REQUIRE(forecast.code == exit_done);
  const Json told = forecast.json()["memory"], took = measured.json()["memory"];
  CHECK(told["peak_bytes"].get<double>() == doctest::Approx(took["peak_bytes"].get<double>()).epsilon(0.05));
  int64_t rest = took["peak_bytes"];
  for (const char* part : {"parameters", "gradients", "optimizer"}) {
    CHECK(told[part] == took[part]);
    rest -= took[part].get<int64_t>();
  }
  CHECK(took["activations_peak"].get<int64_t>() > 0);
  CHECK(told["saved_activations"] == took["saved_activations"]);
  CHECK(took["saved_activations"].get<int64_t>() > 0);
  CHECK(took["workspace"].get<int64_t>() > 0);
  CHECK(took["saved_activations"].get<int64_t>() + took["workspace"].get<int64_t>() == took["activations_peak"]);
  CHECK(told["data"] == rest - took["activations_peak"].get<int64_t>());
  CHECK(told["data"].get<int64_t>() > 0);
  CHECK(forecast.json()["steps"] == measured.json()["steps"]);
  CHECK(read_file(out + "/model.safetensors") == model);  // untouched, in spite of --force
}

}  // namespace

// Fault: a running mean of losses held every step's tape, and memory grew with each step.
TEST_CASE("live buffers after step 1,900 are those after step 100, with logging and evaluation on") {
  ArenaWatch watch;
  Training training({{"data", "blobs"},
                     {"hidden", "8"},
                     {"steps", "2000"},
                     {"batch", "16"},
                     {"accumulate", "2"},
                     {"dropout", "0.1"},
                     {"eval-every", "50"},
                     {"log-every", "100"}},
                    &watch);
  training.trainer.run();
  REQUIRE(watch.seen.size() >= 20);  // a line at 100, 200, … 2,000
  CHECK(watch.seen.front().buffers > 0);
  for (size_t i = 1; i < 20; ++i) {
    INFO("after step " << 100 * (i + 1));
    CHECK(watch.seen[i] == watch.seen.front());
  }
}

TEST_CASE("a run gives all its memory back") {
  const Arena::Use before = backend(Device::cpu).arena().use();
  {
    Training training({{"data", "blobs"}, {"hidden", "8"}, {"steps", "20"}});
    training.trainer.run();
    CHECK(backend(Device::cpu).arena().use().bytes > before.bytes);
  }
  CHECK(backend(Device::cpu).arena().use().bytes == before.bytes);
  CHECK(backend(Device::cpu).arena().use().buffers == before.buffers);
}

TEST_CASE("--dry-run forecasts the peak of memory within 5 %, and trains nothing") {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--data", "digits", "--batch", "32"},  // scoring takes more than a step
           {"--data", "digits", "--batch", "1000", "--hidden", "300,200", "--dropout", "0.2"},
           {"--data", "digits", "--batch", "256", "--hidden", "512", "--optimizer", "sgd", "--precision", "fp64"},
           {"--data", "digits", "--batch", "400", "--workers", "2", "--prefetch",
            "3"},  // seven batches are held at once
           {"--data", "blobs", "--batch", "2000", "--loss", "mse", "--activation", "gelu", "--hidden", "64,64,64"},
           {"--data", "digits", "--batch", "500", "--hidden", "200,200,200", "--recompute", "every=2"},
           {"--data", "task:copy:length=12,symbols=9", "--layers", "4", "--heads", "2", "--width", "32", "--batch",
            "64", "--steps", "3", "--recompute", "blocks"},
           {"--data", "task:copy:length=12,symbols=9", "--layers", "4", "--heads", "2", "--width", "32", "--batch",
            "64", "--steps", "3", "--recompute", "budget=7MiB"}})
    check_forecast(folder, words);
  std::ofstream(folder / "text.txt") << std::string(800, 'a') + std::string(700, 'b');
  for (const char* context : {"64", "600"})
    check_forecast(folder, {"--data", "text:" + (folder / "text.txt"), "--context", context, "--layers", "1", "--width",
                            "32", "--batch", "6", "--validation", "0.45"});
  std::ofstream(folder / "text.txt") << std::string(1600, 'a') + std::string(1500, 'b');  // longer than is measured
  check_forecast(folder, {"--data", "text:" + (folder / "text.txt"), "--context", "1500", "--layers", "1", "--width",
                          "32", "--batch", "6", "--validation", "0.49"});
  const Outcome text = tapedeck::test::tapedeck({"train", "--dry-run", "--lr", "0.25", "--out", folder / "none"});
  INFO(text.out);
  for (const char* part : {"lr", "0.25", "flag", "parameters", "FLOP", "memory"}) CHECK(contains(text.out, part));
  CHECK_FALSE(std::ifstream(folder / "none/config.json").good());
}

// Fault: what lies on the device between steps (the data set, the batch on its way, what a captured step keeps) is in
// no forecast, and a run that was promised to fit ends out of memory.
TEST_CASE("--dry-run forecasts the peak on a device, with steps captured or not, data living there or copied") {
  const TemporaryFolder folder;
  for (const char* graph : {"off", "on"})
    for (std::vector<std::string> words : std::vector<std::vector<std::string>>{
             {"--data", "digits", "--batch", "250", "--hidden", "32"},
             {"--data", "digits", "--batch", "250", "--hidden", "8", "--memory-limit", "460KB"},  // copied
             {"--data", "digits", "--batch", "250", "--hidden", "32,32", "--recompute", "blocks"},
             {"--data", "digits", "--batch", "400", "--loss", "mse", "--precision", "fp64", "--accumulate", "2"}}) {
      words.insert(words.end(), {"--device", "emulated", "--graph", graph});
      check_forecast(folder, words);
    }
}
