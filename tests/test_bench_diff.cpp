// tapedeck bench diff: which rows are the same, what changed, and what makes two documents bad company.
#include <vector>

#include "apps/bench_diff.h"
#include "apps/bench_report.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#include "tests/mentions.h"

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

Json timed(const char* name, const Json& parameters, const std::vector<double>& rounds) {
  Json row = bench_row(name, parameters);
  add_times(row, "median_ms", rounds);
  return row;
}

Json document(const Json& rows) {
  return {{"format_version", 1},
          {"machine", {{"processor", "A"}, {"threads", 2}, {"load", {{"busy", false}}}}},
          {"config",
           {{"command", "bench step"},
            {"precision", {{"value", "fp32"}, {"origin", "default"}}},
            {"rounds", {{"value", 5}, {"origin", "default"}}}}},
          {"rows", rows}};
}

std::string written(const TemporaryFolder& folder, const char* name, const std::string& text) {
  const std::string path = folder / name;
  std::ofstream(path) << text;
  return path;
}

}  // namespace

TEST_CASE("bench diff: rows with the same key are compared, and a verdict needs an interval beside 1") {
  const Json before =
      document({timed("step", {{"batch", 1}}, {1, 1.01, 0.99}), timed("step", {{"batch", 2}}, {1, 1.2, 0.9}),
                timed("step", {{"batch", 4}}, {2, 2.01, 1.99}), timed("step", {{"batch", 8}}, {1, 1, 1})});
  const Json after =
      document({timed("step", {{"batch", 4}}, {1, 1.01, 0.99}), timed("step", {{"batch", 1}}, {2, 2.02, 1.98}),
                timed("step", {{"batch", 2}}, {1.1, 1, 0.95}), timed("step", {{"batch", 16}}, {1, 1, 1})});
  const Json diff = diff_rows(before, after);
  const Json& rows = diff["rows"];
  REQUIRE(rows.size() == 3);
  CHECK(rows[0]["key"] == "step batch=1");
  CHECK(rows[0]["ratio"] == doctest::Approx(2));
  CHECK(rows[0]["verdict"] == "slower");
  CHECK(rows[0]["ratio_low"] > 1.9);
  CHECK(rows[0]["ratio_high"] < 2.1);
  CHECK(rows[1]["verdict"] == "no difference shown");
  CHECK(rows[2]["verdict"] == "faster");
  CHECK(rows[2]["before"] == 2);
  CHECK(rows[2]["after"] == 1);
  CHECK(diff["only_before"] == Json::array({"step batch=8"}));
  CHECK(diff["only_after"] == Json::array({"step batch=16"}));
}

TEST_CASE("bench diff: what a row compares has its own times, and a single round has no interval") {
  const auto row = [](double fused) {
    Json out = bench_row("attention", {{"context", 64}});
    add_times(out["fused"], "median_ms", std::vector<double>{fused});
    add_times(out["composed"], "median_ms", std::vector<double>{4.0, 4.1});
    add_times(out["absent"], "median_ms", std::vector<double>{});
    return document(Json::array({out}));
  };
  const Json rows = diff_rows(row(1), row(3))["rows"];
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["key"] == "attention context=64, fused");
  CHECK(rows[0]["ratio"] == 3);
  CHECK(rows[0]["ratio_low"].is_null());
  CHECK(rows[0]["verdict"] == "one round: no interval");
  CHECK(rows[1]["verdict"] == "no difference shown");
}

// Fault: two results look alike and were measured with other threads, precision or on another machine.
TEST_CASE("bench diff: another machine, threads, precision or a busy machine is said") {
  const Json before = document(Json::array());
  CHECK(differences(before, before).empty());
  Json after = before;
  after["config"]["rounds"]["value"] = 9;  // how long it measured
  CHECK(differences(before, after).empty());
  after["machine"]["threads"] = 4;
  after["machine"]["processor"] = "B";
  after["machine"]["load"]["busy"] = true;
  after["config"]["precision"]["value"] = "bf16";
  after["config"]["hidden"] = {{"value", {8, 9}}, {"origin", "flag"}};
  std::string all;
  for (const std::string& one : differences(before, after)) all += one + "\n";
  CHECK(mentions(all, {"threads: 2 -> 4", "processor: A -> B", "--precision: fp32 -> bf16", "--hidden: none -> [8,9]",
                       "busy", "\"after\""}));
  CHECK(differences(before, after).size() == 5);
}

TEST_CASE("bench diff: of two saved benches, as a table and as strict JSON") {
  const TemporaryFolder folder;
  const auto bench = [&](const char* name, const char* batches, const char* precision) {
    const std::string file = folder / name;
    const Outcome run =
        tapedeck::test::tapedeck({"bench", "batch", "--batches", batches, "--hidden", "8", "--rounds", "3", "--steps",
                                  "2", "--threads", "1", "--precision", precision, "--save", file, "--quiet"});
    INFO(run.err);
    REQUIRE(run.code == exit_done);
    return file;
  };
  const std::string before = bench("before.json", "1,4", "fp32"), after = bench("after.json", "4,9", "fp64");
  const Outcome text = tapedeck::test::tapedeck({"bench", "diff", before, after});
  INFO(text.out << text.err);
  CHECK(text.code == exit_done);
  CHECK(mentions(text.out, {"warning: not alike: --precision: fp32 -> fp64", "batch batch=4", "3, 3",
                            "only_before: batch batch=1", "only_after: batch batch=9", "95 % interval"}));
  const Json json = tapedeck::test::tapedeck({"bench", "diff", before, after, "--json"}).json();
  REQUIRE(json["rows"].size() == 1);
  CHECK(json["rows"][0]["n_before"] == 3);
  CHECK(json["rows"][0]["ratio_low"] <= json["rows"][0]["ratio"]);
  CHECK(json["warnings"].size() >= 1);
}

TEST_CASE("bench diff: files that are no documents of a bench are refused by name") {
  const TemporaryFolder folder;
  const std::string good =
      written(folder, "good.json", document(Json::array({timed("step", {{"batch", 1}}, {1, 2})})).dump());
  const std::string other =
      written(folder, "other.json", document(Json::array({timed("loader", {{"batch", 1}}, {1, 2})})).dump());
  struct Bad {
    std::string file;
    std::initializer_list<std::string_view> words;
  };
  Json newer = document(Json::array());
  newer["format_version"] = 1000;
  Json negative = document(Json::array({timed("step", {{"batch", 1}}, {1, 2})}));
  negative["rows"][0]["rounds"][1] = -2;
  Json text_rounds = negative;
  text_rounds["rows"][0]["rounds"] = Json::array({"1", "2"});
  Json no_key = negative;
  no_key["rows"][0].erase("key");
  for (const Bad& bad : {Bad{folder / "missing.json", {"missing.json"}},
                         {written(folder, "text.json", "step 1.5"), {"text.json", "no JSON", "--save"}},
                         {written(folder, "half.json", read_file(good).substr(0, 100)), {"half.json", "no JSON"}},
                         {written(folder, "list.json", "[1, 2]"), {"list.json", "no document"}},
                         {written(folder, "run.json", R"({"format_version": 1})"), {"run.json", "no machine"}},
                         {written(folder, "newer.json", newer.dump()), {"newer.json", "1000", "newer tapedeck"}},
                         {written(folder, "negative.json", negative.dump()), {"negative.json", "step batch=1", "-2"}},
                         {written(folder, "words.json", text_rounds.dump()), {"words.json", "damaged"}},
                         {written(folder, "keyless.json", no_key.dump()), {"keyless.json", "without a key"}},
                         {other, {"no timed row in common", "loader batch=1", "same sizes"}}})
    for (const bool first : {true, false}) {
      const Outcome run = first ? tapedeck::test::tapedeck({"bench", "diff", bad.file, good})
                                : tapedeck::test::tapedeck({"bench", "diff", good, bad.file});
      INFO(run.err);
      CHECK(run.code == exit_failed);
      CHECK(mentions(run.err, bad.words));
      CHECK(run.out.empty());
    }
}
