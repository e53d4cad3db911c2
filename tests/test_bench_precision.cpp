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
