// bench recompute: every policy with its time and memory over those of none.
#include "tests/program.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#include "tests/mentions.h"

using namespace tapedeck;
using namespace tapedeck::test;

TEST_CASE("bench recompute: each policy saves less than none, and the table says so") {
  const std::vector<std::string> words = {"bench",   "recompute", "--layers", "4",        "--width",  "32",
                                          "--heads", "2",         "--batch",  "2",        "--rounds", "2",
                                          "--quiet", "--threads", "1",        "--device", "cpu"};
  std::vector<std::string> json = words;
  json.push_back("--json");
  const Outcome run = tapedeck::test::tapedeck(json);
  INFO(run.err);
  REQUIRE(run.code == exit_done);
  const Json document = run.json(), rows = document["rows"];
  CHECK(document["context"] == 128);
  REQUIRE(rows.size() == 4);
  double before = 2;
  for (const Json& row : rows) {
    INFO(row.dump());
    CHECK(row["n"] == 2);
    CHECK(row["median_ms"] > 0);
    CHECK(row["saved_over_none"] < before);
    before = row["saved_over_none"];
    CHECK(row["time_over_none"]["ratio"] > 0);
  }
  CHECK(rows[1]["saved_over_none"] <= 0.65);
  CHECK(rows[3]["saved_over_none"] <= 0.25);
  CHECK(rows[3]["peak_bytes"] < rows[0]["peak_bytes"]);
  const Outcome table = tapedeck::test::tapedeck(words);
  INFO(table.err);
  CHECK(mentions(table.out, {"gpt of 4 layers", "budget 65 %", "blocks", "time / none", "bitwise those of none"}));
}
