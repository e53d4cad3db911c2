// tapedeck evaluate: a saved run scored again, and every way in which a folder may not be one.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <set>

#include "engine/safetensors.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

namespace fs = std::filesystem;

// A short run in folder/run.
struct Run {
  explicit Run(std::vector<std::string> options = {"--data", "blobs", "--hidden", "8", "--steps", "40", "--lr",
                                                   "0.05"}) {
    path = folder / "run";
    options.insert(options.begin(), "train");
    options.insert(options.end(), {"--out", path, "--quiet", "--threads", "1"});
    const Outcome trained = tapedeck::test::tapedeck(options);
    INFO(trained.err);
    REQUIRE(trained.code == exit_done);
  }
  Outcome evaluate(std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"evaluate", path, "--threads", "1"});
    return tapedeck::test::tapedeck(options);
  }
  void write(const char* file, const std::string& bytes) const { std::ofstream(path + "/" + file) << bytes; }

  TemporaryFolder folder;
  std::string path;
};

// The weights of a run with one change, as the file's bytes.
template <class Change>
std::string changed_weights(const Run& run, const Change& change) {
  std::vector<NamedTensor> tensors = from_safetensors(read_file(run.path + "/model.safetensors"), "model");
  change(tensors);
  return to_safetensors(tensors);
}

void refuses(const Run& run, std::initializer_list<const char*> parts) {
  const Outcome outcome = run.evaluate();
  INFO(outcome.err);
  CHECK(outcome.code == exit_failed);
  CHECK(outcome.out.empty());
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  for (const char* part : parts) CHECK(contains(outcome.err, part));
}

}  // namespace

TEST_CASE("evaluate gives the test loss and accuracy that the run ended with, exactly") {
  const Run run;
  const Json summary = read_json(run.path + "/summary.json"), again = run.evaluate({"--json"}).json();
  CHECK(again["loss"] == summary["final"]["test_loss"]);
  CHECK(again["accuracy"] == summary["final"]["test_accuracy"]);
  CHECK(again["examples"] == 400);
  CHECK(again["rmse"].is_null());
  const Json validation = run.evaluate({"--json", "--split", "validation"}).json();
  CHECK(validation["loss"] == summary["final"]["validation_loss"]);
  CHECK(validation["loss"] != again["loss"]);
  CHECK(run.evaluate({"--json", "--split", "train"}).json()["examples"] == 3200);
}

TEST_CASE("rows of the confusion matrix sum to the class counts, its diagonal to the right answers") {
  const Run run;
  const Json scored = run.evaluate({"--json"}).json();
  const Json info = tapedeck::test::tapedeck({"data", "info", "blobs", "--json"}).json();
  const auto confusion = scored["confusion"].get<std::vector<std::vector<int64_t>>>();
  const auto counts = info["splits"]["test"]["class_counts"].get<std::vector<int64_t>>();
  REQUIRE(confusion.size() == 4);
  int64_t right = 0;
  for (size_t k = 0; k < confusion.size(); ++k) {
    INFO("class " << k);
    CHECK(std::accumulate(confusion[k].begin(), confusion[k].end(), int64_t{0}) == counts[k]);
    CHECK(scored["classes"][k]["examples"] == counts[k]);
    CHECK(scored["classes"][k]["recall"] == doctest::Approx(double(confusion[k][k]) / double(counts[k])));
    int64_t taken = 0;
    for (const auto& row : confusion) taken += row[k];
    if (taken > 0)
      CHECK(scored["classes"][k]["precision"] == doctest::Approx(double(confusion[k][k]) / double(taken)));
    else
      CHECK(scored["classes"][k]["precision"].is_null());
    right += confusion[k][k];
  }
  CHECK(scored["accuracy"] == doctest::Approx(double(right) / 400));
  CHECK(right > 200);  // else the matrix is of noise

  const std::string text = run.evaluate().out;
  INFO(text);
  for (const char* part : {"400 test examples of blobs", "accuracy", "recall", "precision"})
    CHECK(contains(text, part));
}

TEST_CASE("the predictions file has a line for each example, which agrees with the score") {
  const Run run;
  const std::string file = run.folder / "predictions.csv";
  const Json scored = run.evaluate({"--json", "--predictions", file}).json();
  std::istringstream lines(read_file(file));
  std::string line;
  std::getline(lines, line);
  CHECK(line == "row,label,predicted,probability");
  int64_t count = 0, right = 0;
  std::set<int> rows;
  while (std::getline(lines, line)) {
    int row = -1, label = -1, predicted = -1;
    double probability = 0;
    REQUIRE(std::sscanf(line.c_str(), "%d,%d,%d,%lf", &row, &label, &predicted, &probability) == 4);
    CHECK((probability >= 0.25 && probability <= 1));  // of the largest of 4
    rows.insert(row);
    right += label == predicted;
    ++count;
  }
  CHECK(count == 400);
  CHECK(rows.size() == 400);
  CHECK(scored["accuracy"] == doctest::Approx(double(right) / double(count)));

  const Outcome unwritable = run.evaluate({"--predictions", run.folder / "missing/predictions.csv"});
  CHECK(unwritable.code == exit_failed);
  CHECK(contains(unwritable.err, "cannot be written"));
}

TEST_CASE("a model of numbers is scored by loss and root mean square error") {
  const Run run({"--data", "blobs", "--loss", "mse", "--hidden", "8", "--steps", "40", "--precision", "fp64"});
  const std::string file = run.folder / "predictions.csv";
  const Json scored = run.evaluate({"--json", "--predictions", file}).json();
  CHECK(scored["loss"] == read_json(run.path + "/summary.json")["final"]["test_loss"]);
  CHECK(scored["accuracy"].is_null());
  CHECK(scored["confusion"].is_null());
  CHECK(scored["rmse"].get<double>() == doctest::Approx(std::sqrt(scored["loss"].get<double>())));
  CHECK(contains(run.evaluate().out, "rmse"));

  std::istringstream lines(read_file(file));
  std::string line;
  std::getline(lines, line);
  CHECK(line == "row,target,predicted");
  double squares = 0;
  int64_t count = 0;
  for (; std::getline(lines, line); ++count) {
    int row = 0;
    double target = 0, predicted = 0;
    REQUIRE(std::sscanf(line.c_str(), "%d,%lf,%lf", &row, &target, &predicted) == 3);
    squares += (target - predicted) * (target - predicted);
  }
  CHECK(count == 400);
  CHECK(squares / double(count) == doctest::Approx(scored["loss"].get<double>()).epsilon(1e-6));
}

TEST_CASE("a folder that is no run is refused in one sentence") {
  const TemporaryFolder folder;
  for (const std::string& path : {folder / "missing", folder.path()}) {
    const Outcome outcome = tapedeck::test::tapedeck({"evaluate", path});
    INFO(outcome.err);
    CHECK(outcome.code == exit_failed);
    CHECK(contains(outcome.err, path));
    CHECK(contains(outcome.err, "config.json"));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  }
  CHECK(tapedeck::test::tapedeck({"evaluate"}).code == exit_usage);
}

TEST_CASE("weights that are not those of the run's model are refused in one sentence") {
  const Run run;
  const std::string good = read_file(run.path + "/model.safetensors");

  run.write("model.safetensors", changed_weights(run, [](auto& all) { all.pop_back(); }));
  refuses(run, {"holds no tensor mlp."});
  run.write("model.safetensors", good);
  run.write("model.safetensors", changed_weights(run, [](auto& all) { all.emplace_back("extra", all[0].second); }));
  refuses(run, {"holds a tensor extra"});
  run.write("model.safetensors", good);
  run.write("model.safetensors", changed_weights(run, [](auto& all) {
              all[0].second = Tensor::full({3, 5}, DType::f32, Device::cpu, 0);
            }));
  refuses(run, {"[3, 5]", "[8, 2]", "blobs (2 features, 4 classes)"});
  run.write("model.safetensors", good);
  run.write("model.safetensors", changed_weights(run, [](auto& all) {
              all[0].second = Tensor::full(all[0].second.shape, DType::f64, Device::cpu, 0);
            }));
  refuses(run, {"f64", "f32"});
  run.write("model.safetensors", good.substr(0, good.size() - 1));
  refuses(run, {"model.safetensors", "cut short"});
  run.write("model.safetensors", good.substr(0, good.size() / 4));
  refuses(run, {"model.safetensors", "the header promises"});
  run.write("model.safetensors", "");
  refuses(run, {"model.safetensors"});
}

// Fault: weights of NaN were scored as a model that takes everything for class 0, with exit code 0.
TEST_CASE("a saved model that computes NaN is refused, not scored") {
  const Run run;
  run.write("model.safetensors", changed_weights(run, [](auto& all) {
              all[0].second = Tensor::full(all[0].second.shape, DType::f32, Device::cpu, NAN);
            }));
  const Outcome outcome = run.evaluate({"--predictions", run.path + "/predictions.csv"});
  CHECK(outcome.code == exit_diverged);
  CHECK(outcome.out.empty());
  CHECK(contains(outcome.err, "not finite"));
  CHECK_FALSE(fs::exists(run.path + "/predictions.csv"));
}

TEST_CASE("a model trained on other data is refused with what both hold") {
  const Run run;
  Json config = read_json(run.path + "/config.json");
  for (const char* key : {"validation", "test"}) config[key]["value"] = nullptr;
  config["data"]["value"] = "digits";
  run.write("config.json", config.dump());
  refuses(run, {"digits: has 64 features", "trained on blobs with 2"});
  fs::remove(run.path + "/data.json");
  refuses(run, {"[8, 2]", "[8, 64]", "digits (64 features, 10 classes)"});

  config["data"]["value"] = "no-such";
  run.write("config.json", config.dump());
  refuses(run, {"no-such"});
  run.write("config.json", "{\"format_version\": 1, ");
  refuses(run, {"config.json", "JSON"});
  run.write("config.json", "{\"format_version\": 99}");
  refuses(run, {"config.json", "99"});
}
