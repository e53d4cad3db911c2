// tapedeck bench precision, and what --log-underflow says.
#include "apps/underflow.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"
#include "tests/training.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

TEST_CASE("bench precision: 16 bits save half, err as they round, and every form trains") {
  const Outcome bench =
      tapedeck::test::tapedeck({"bench", "precision", "--batches", "16,64", "--hidden", "32,32", "--rounds", "2",
                                "--steps", "2", "--threads", "1", "--json", "--quiet"});
  INFO(bench.err);
  REQUIRE(bench.code == exit_done);
  const Json rows = bench.json()["rows"];
  REQUIRE(rows.size() == 10);  // four forms and a ratio, for each batch size
  for (const size_t first : {0, 5}) {
    CHECK(rows[first]["precision"] == "fp32");
    CHECK(rows[first]["error"] < 1e-6);
    CHECK(rows[first]["over_fp32"]["ratio"] == 1);
    for (size_t i = first + 1; i < first + 4; ++i) {
      CHECK(rows[i]["saved_share"] <= 0.55);
      CHECK(rows[i]["saved_share"] >= 0.45);
      CHECK(rows[i]["error"] < (rows[i]["precision"] == "bf16" ? 2e-2 : 3e-3));
      CHECK(rows[i]["error"] > 1e-5);
      CHECK(rows[i]["n"] == 4);
      CHECK(rows[i]["median_ms"] > 0);
    }
    CHECK(rows[first + 4]["ratio"]["n"] == 2);
  }
}

// Fault: a count of what is lost that also counts numbers which are 0 anyway, as behind dropout.
TEST_CASE("of small gradients none is lost at a scale large enough, as many as without at scale 1, all at a tiny one") {
  Training training({{"data", "blobs"}, {"hidden", "16"}, {"precision", "fp16"}, {"dropout", "0.5"}, {"steps", "5"}});
  training.trainer.run();
  const auto at = [&](double scale) {
    return underflow(training.config, training.device, training.trainer.learner(), scale);
  };
  const std::vector<LayerUnderflow> one = at(1), large = at(0x1p80), tiny = at(0x1p-80);
  REQUIRE(one.size() == large.size());
  CHECK(one.size() >= 3);  // the loss and two layers
  int64_t zeros = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    INFO(one[i].layer);
    CHECK(one[i].lost_scaled == one[i].lost);
    CHECK(large[i].lost == one[i].lost);
    CHECK(large[i].lost_scaled == 0);
    zeros += tiny[i].numbers - tiny[i].lost_scaled;
  }
  CHECK(zeros > 0);
  CHECK(zeros < one[0].numbers + one[1].numbers + one[2].numbers);
}

// Fault: a count of what lies below fp16's smallest number, although half of that still rounds up to it.
TEST_CASE("what fp16 loses is what it rounds to 0: up to 2^-25, at every scale") {
  const double least = 0x1p-24, half = 0x1p-25;
  const Tensor dy =
      Tensor::from(std::vector<float>{float(least), float(1.5 * half), float(half), 0, -float(half), 1}, {6});
  struct Row {
    double scale;
    int64_t lost;
  };
  for (const Row& row : {Row{1, 2}, {0.5, 4}, {0.25, 4}, {2, 0}, {0x1p-30, 5}}) {
    UnderflowWatch watch(row.scale);
    watch.gradient("linear", "mlp.out", dy);
    REQUIRE(watch.layers.size() == 1);
    CHECK(watch.layers[0].layer == "mlp.out linear");
    CHECK(watch.layers[0].numbers == 6);
    CHECK(watch.layers[0].lost == 2);
    CHECK(watch.layers[0].lost_scaled == row.lost);
  }
}

// Fault: it ended with an error after training, where a part was recomputed and where weights were of another type.
TEST_CASE("--log-underflow says the same whatever is recomputed, and in every precision") {
  const TemporaryFolder folder;
  const auto layers = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"train",
                                      "--data",
                                      "task:copy:length=5,symbols=9",
                                      "--width",
                                      "16",
                                      "--heads",
                                      "2",
                                      "--steps",
                                      "3",
                                      "--threads",
                                      "1",
                                      "--out",
                                      folder / name,
                                      "--quiet",
                                      "--json",
                                      "--log-underflow"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome run = tapedeck::test::tapedeck(words);
    INFO(name << ": " << run.err);
    REQUIRE(run.code == exit_done);
    Json rows = run.json()["underflow"]["layers"];
    for (Json& row : rows) row.erase("layer");  // a sum on the stream stands before a recomputed block, not in it
    return rows;
  };
  const Json plain = layers("plain", {});
  CHECK(plain.size() > 10);
  CHECK(layers("blocks", {"--recompute", "blocks"}) == plain);
  CHECK(layers("every", {"--recompute", "every=2"}) == plain);
  for (const char* precision : {"fp64", "bf16"})
    CHECK(layers(precision, {"--precision", precision}).size() == plain.size());
  const Outcome repeat = tapedeck::test::tapedeck({"train", "--repeat", "2", "--log-underflow", "--steps", "1"});
  CHECK(repeat.code == exit_usage);
  CHECK(contains(repeat.err, "--log-underflow --repeat 2"));
}

TEST_CASE("--log-underflow reports every layer, in text and in JSON") {
  const TemporaryFolder folder;
  std::vector<std::string> options = {"train",     "--data", "blobs", "--precision",  "fp16",    "--steps",        "3",
                                      "--threads", "1",      "--out", folder / "run", "--quiet", "--log-underflow"};
  const Outcome text = tapedeck::test::tapedeck(options);
  INFO(text.err);
  CHECK(text.code == exit_done);
  CHECK(contains(text.out, "gradients that fp16 would lose"));
  CHECK(contains(text.out, "mlp.hidden0 linear"));
  options.insert(options.end(), {"--json", "--force"});
  const Json json = tapedeck::test::tapedeck(options).json();
  CHECK(json["underflow"]["scale"] == 65536);
  CHECK(json["underflow"]["layers"].size() >= 4);
}
