// Training on data in files, through the command line.
#include <filesystem>

#include "data/npy.h"
#include "tests/idx_bytes.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

const std::vector<std::string> small = {"train", "--hidden", "8", "--steps", "3", "--threads", "1", "--quiet"};

Outcome train(std::vector<std::string> more) {
  more.insert(more.begin(), small.begin(), small.end());
  return tapedeck::test::tapedeck(more);
}

}  // namespace

TEST_CASE("train learns the real digits from CSV, and evaluate takes the file as the run did") {
  const auto path = test_data("digits/digits.csv.gz");
  if (!path) return;
  const TemporaryFolder folder;
  const Outcome run = tapedeck::test::tapedeck({"train", "--data", "csv:" + *path, "--target", "accuracy=0.95",
                                                "--threads", "1", "--quiet", "--out", folder / "run", "--json"});
  INFO(run.err);
  REQUIRE(run.code == exit_done);
  const Outcome scored = tapedeck::test::tapedeck({"evaluate", folder / "run", "--threads", "1", "--json"});
  INFO(scored.err);
  REQUIRE(scored.code == exit_done);
  CHECK(scored.json()["accuracy"] == run.json()["final"]["test_accuracy"]);
}

// Fault: a class id that is none reached the loss, which read out of bounds.
TEST_CASE("train refuses a label that is none before its first step, with file, row and value") {
  const TemporaryFolder folder;
  std::vector<uint8_t> labels;
  for (int i = 0; i < 20; ++i) labels.push_back(static_cast<uint8_t>(i == 7 ? -4 : i % 10));
  const std::string images = folder.write("x.idx", idx_images(20, 2, 2));
  const std::string x = folder.write("x.npy", text_bytes(npy_header("|u1", std::vector<int64_t>{20, 4})) + Bytes(80));
  const std::string y = folder.write("y.npy", text_bytes(npy_header("|i1", std::vector<int64_t>{20})) + labels);
  const Outcome npy = train({"--data", "npy:" + x, "--label", y, "--out", folder / "run"});
  CHECK(npy.code == exit_failed);
  CHECK(contains(npy.err, "y.npy: label -4 at row 7 is no class id"));
  CHECK_FALSE(std::filesystem::exists(folder / "run/metrics.jsonl"));

  const std::string csv = folder.write("t.csv", text_bytes("a,b\n1,2\n3,-4.5\n"));
  const Outcome classes = train({"--data", "csv:" + csv});
  CHECK(classes.code == exit_failed);
  CHECK(contains(classes.err, "t.csv: line 3, column \"b\": \"-4.5\" is no class"));
  CHECK(contains(classes.err, "--loss mse"));

  const Outcome missing = train({"--data", "idx:" + images});
  CHECK(missing.code == exit_usage);
  CHECK(contains(missing.err, "--label FILE"));
  const Outcome text = tapedeck::test::tapedeck({"train", "--data", "text:" + csv, "--quiet"});
  CHECK(text.code == exit_usage);
  CHECK(contains(text.err, "t.csv: has 15 tokens, but a window of 64"));
}
