// bench attention: both forms, forward and backward, at every number of positions, with their ratio and their memory.
#include "tests/program.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#include "tests/mentions.h"

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

Outcome bench(std::vector<std::string> words) {
  words.insert(words.begin(), {"bench", "attention", "--threads", "1", "--rounds", "2", "--heads", "2"});
  return tapedeck::test::tapedeck(words);
}

}  // namespace

TEST_CASE("bench attention: every number of positions has its two passes, and the fused form's memory grows with T") {
  const Outcome run = bench({"--width", "8", "--tokens", "256", "--contexts", "64,256", "--json", "--device", "cpu"});
  INFO(run.err);
  REQUIRE(run.code == exit_done);
  const Json rows = run.json()["rows"];
  REQUIRE(rows.size() == 4);
  for (size_t i = 0; i < rows.size(); ++i) {
    const Json& row = rows[i];
    INFO(row.dump());
    CHECK(row["context"] == (i < 2 ? 64 : 256));
    CHECK(row["batch"] == (i < 2 ? 4 : 1));
    CHECK(row["pass"] == (i % 2 == 0 ? "forward" : "forward and backward"));
    for (const char* form : {"fused", "composed"}) {
      CHECK(row[form]["n"] == 2);
      CHECK(row[form]["median_ms"] > 0);
    }
    CHECK(row["fused_over_composed"]["n"] == 2);
    CHECK(row["fused_over_composed"]["ratio_low"] <= row["fused_over_composed"]["ratio"]);
  }
  // Composed, a batch of 256 positions holds 2 · 4 · 64² weights, then 2 · 256² of 4 bytes, and their gradients.
  CHECK(rows[3]["composed"]["peak_bytes"] > 4 * 2 * 256 * 256);
  CHECK(rows[2]["fused"]["peak_bytes"] < rows[2]["composed"]["peak_bytes"]);
}

TEST_CASE("bench attention: prints a table, and refuses a width that heads do not share") {
  const Outcome run = bench({"--width", "8", "--tokens", "8", "--contexts", "8", "--device", "emulated"});
  INFO(run.err);
  CHECK(run.code == exit_done);
  CHECK(mentions(run.out, {"attention, 2 heads of 4 numbers", "on emulated", " causal ", "fused / composed",
                           "forward and backward"}));
  const Outcome refused = bench({"--width", "9"});
  CHECK(refused.code == exit_usage);
  CHECK(mentions(refused.err, {"--width 9", "--heads 2"}));
}

TEST_CASE("bench attention: --mask both has rows of each, and without the mask there are more weights to compute") {
  const Outcome run =
      bench({"--width", "8", "--tokens", "8", "--contexts", "8", "--device", "cpu", "--json", "--mask", "both"});
  INFO(run.err);
  REQUIRE(run.code == exit_done);
  const Json rows = run.json()["rows"];
  REQUIRE(rows.size() == 4);
  for (size_t i = 0; i < rows.size(); ++i) CHECK(rows[i]["mask"] == (i < 2 ? "causal" : "full"));
  CHECK(mentions(run.err, {"warm-up: 8 positions, causal", "round 2 of 2: 8 positions, full"}));
}

TEST_CASE("bench attention: what does not fit into memory is named, and the other rows and columns stay") {
  // Composed, 2 heads hold 2 · 1024² weights of 4 bytes; fused none of them. Of 65536 positions not even the input
  // fits.
  const Outcome run = bench(
      {"--width", "8", "--tokens", "64", "--contexts", "65536,1024,64", "--device", "cpu", "--memory-limit", "4MiB"});
  INFO(run.out << run.err);
  CHECK(run.code == exit_out_of_memory);
  CHECK(mentions(run.err,
                 {"65536 positions, causal; ", "; 1024 positions, causal, composed, forward; ",
                  "1024 positions, causal, composed, forward and backward. The other rows stand.", "arena cpu"}));
  CHECK_FALSE(contains(run.out, "\n 65536"));
  CHECK(contains(run.out, "\n  1024      1 causal  forward and backward "));
  CHECK(contains(run.out, " - "));
  CHECK(contains(run.out, "\n    64      1 causal  forward and backward "));
}
