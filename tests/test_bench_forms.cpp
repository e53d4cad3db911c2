// tapedeck bench fusion, threads, transfer and all: forms that agree, bounds that hold by counting, and one document.
#include <fstream>
#include <vector>

#include "apps/bench_turns.h"
#include "tests/program.h"
#include "tests/settings.h"
#include "tests/test_data_folder.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#include "tests/mentions.h"

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

Outcome bench(std::vector<std::string> words) {
  words.insert(words.begin(), "bench");
  words.emplace_back("--quiet");
  return tapedeck::test::tapedeck(words);
}

Json bench_json(std::vector<std::string> words) {
  words.emplace_back("--json");
  const Outcome run = bench(words);
  INFO(run.err);
  REQUIRE(run.code == exit_done);
  return run.json();
}

}  // namespace

TEST_CASE("bench fusion: a chain of three in one pass moves a third of the bytes, and gives the same numbers") {
  for (const char* device : {"cpu", "emulated"}) {
    const Json rows = bench_json(
        {"fusion", "--sizes", "3", "--rounds", "2", "--steps", "2", "--threads", "1", "--device", device})["rows"];
    REQUIRE(rows.size() == 8);
    for (const Json& row : rows) {
      INFO(row.dump());
      CHECK(row["fused"]["n"] == 4);
      CHECK(row["apart"]["rounds"].size() == 2);
      CHECK(row["error"] < 4e-6);
      CHECK(row["bytes_ratio"] < 1);
      CHECK(row["fused_over_apart"]["n"] == 2);
    }
    const double numbers = 3 * 256 * 4;  // bytes of x
    CHECK(rows[0]["fused"]["bytes"] == 2 * numbers);
    CHECK(rows[0]["apart"]["bytes"] == 6 * numbers);
  }
}

TEST_CASE("bench threads: each count has its speed-up over one thread, whose outputs all compute") {
  const Threads as_before(threads());
  const Json rows = bench_json(
      {"threads", "--threads", "3", "--batches", "16", "--hidden", "8", "--rounds", "2", "--steps", "2"})["rows"];
  REQUIRE(rows.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(rows[i]["threads"] == i + 1);
    CHECK(rows[i]["n"] == 4);
    const double speed_up = rows[i]["speed_up"]["ratio"];
    CHECK(rows[i]["efficiency"] == doctest::Approx(speed_up / static_cast<double>(i + 1)));
    CHECK(rows[i]["error"] < 4e-6);
  }
  CHECK(rows[0]["speed_up"]["ratio"] == 1);
  const Outcome elsewhere = bench({"threads", "--device", "emulated"});
  CHECK(elsewhere.code == exit_usage);
  CHECK(mentions(elsewhere.err, {"threads are the CPU's", "--device cpu"}));
}

TEST_CASE("bench transfer: the right numbers arrive both ways, in counted time, and a CPU has nothing to transfer") {
  const Json document = bench_json({"transfer", "--device", "emulated", "--sizes", "4", "--rounds", "2"});
  CHECK(document["times"] == "logical");
  const Json& rows = document["rows"];
  REQUIRE(rows.size() == 10);
  for (size_t i = 0; i < rows.size(); ++i) {
    INFO(rows[i].dump());
    CHECK(rows[i]["n"] == 2);
    CHECK(rows[i]["to"] == (i < 5 ? "device" : "host"));
    CHECK(rows[i]["gb_per_s"].is_null());  // counted time has none
    const double us = rows[i]["median_us"];
    if (rows[i]["way"] == "pinned") CHECK(us == doctest::Approx(1));
    if (rows[i]["way"] == "computing alone") CHECK(us == doctest::Approx(document["kernels"].get<double>()));
    if (rows[i]["way"] == "pinned, beside computing")
      CHECK(us == doctest::Approx(document["kernels"].get<double>() + 1));
  }
  const Outcome cpu = bench({"transfer", "--device", "cpu"});
  CHECK(cpu.code == exit_usage);
  CHECK(mentions(cpu.err, {"nothing is transferred", "--device cuda", "--device emulated"}));
}

// Fault: a number that is not finite breaks the record, and the failure it should show is lost.
TEST_CASE("a bench that does not train says so in strict JSON, and its other rows stand") {
  const TemporaryFolder folder;
  const std::string save = folder / "bench.json";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"step", "--precision", "fp16", "--loss-scale", "1e36"},
        {"step", "--optimizer", "sgd", "--lr", "1e30"}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--batches", "4", "--hidden", "8", "--rounds", "2", "--steps", "3", "--memory-limit",
                           "64MiB", "--save", save});
    const Outcome run = bench(all);
    INFO(run.out << run.err);
    CHECK(run.code == exit_diverged);
    CHECK(mentions(run.err,
                   {"diverged: batch 4", "of 8 steps changed the weights", "not finite", "--lr", "No row is left"}));
    const Json document = read_json(save);  // strict
    CHECK(document["rows"].empty());
    CHECK(document["failed"][0]["size"] == "batch 4");
  }
  Config config;
  config.quiet = true;
  Turns turns(config);
  CHECK(turns.fit("good", [] {}));
  CHECK_FALSE(turns.fit("bad", [] { throw Error("is nan"); }));
  CHECK_FALSE(turns.fit("large", [] { throw OutOfMemory("full"); }));
  CHECK_THROWS_AS(turns.fit("wrong", [] { throw UsageError("no such option"); }), UsageError);
  Json document;
  turns.add_dropped(document);
  CHECK(document["failed"] == Json::parse(R"([{"size": "bad", "why": "is nan"}])"));
  CHECK(document["does_not_fit"] == Json::parse(R"([{"size": "large", "why": "full"}])"));
  CHECK_THROWS_WITH_AS(turns.check(), "failed: bad. No row is left. is nan", Error);
  document["rows"] = Json::array({1});
  turns.add_dropped(document);
  CHECK_THROWS_WITH_AS(turns.check(), "failed: bad. The other rows stand. is nan", Error);
  Turns mixed(config);  // the first that failed says how it ended
  mixed.fit("bad", [] { throw Error("is nan"); });
  mixed.fit("far", [] { throw Diverged("too far"); });
  CHECK_THROWS_WITH_AS(mixed.check(), "failed: bad; far. No row is left. too far", Error);
}

// Fault: two files look alike, and what was in effect when they were measured cannot be told.
TEST_CASE("a bench's document has every option in effect with its origin, and the machine and build") {
  const Json document = bench_json({"fusion", "--sizes", "2", "--rounds", "1", "--steps", "1", "--threads", "1"});
  const Json& config = document["config"];
  CHECK(config["command"] == "bench fusion");
  CHECK(config["sizes"]["value"] == Json::array({2}));
  CHECK(config["sizes"]["origin"] == "flag");
  CHECK(config["precision"]["value"] == "fp32");
  CHECK(config["precision"]["origin"] == "default");
  const Config from_environment = configure("bench fusion", {}, "3");
  CHECK(to_json(from_environment)["threads"]["origin"] == "environment");
  for (const char* key :
       {"processor", "threads", "device", "driver", "compiler", "flags", "libraries", "commit", "load"})
    CHECK(document["machine"].contains(key));
}

TEST_CASE("bench all: every bench that a device has, as one document that bench diff reads") {
  const TemporaryFolder folder;
  const std::string save = folder / "all.json";
  const Outcome run = bench({"all", "--device", "emulated", "--rounds", "1", "--threads", "1", "--save", save});
  INFO(run.out << run.err);
  CHECK(run.code == exit_done);
  const Json document = read_json(save);
  for (const char* name : {"bench peaks", "bench matmul", "bench step", "bench batch", "bench precision",
                           "bench fusion", "bench attention", "bench recompute", "bench launch", "bench transfer"})
    CHECK(document["benches"].contains(name));
  CHECK(document["left_out"].size() == 2);
  CHECK(document["failed"].empty());
  CHECK(mentions(run.out, {"== bench matmul", "left out: threads are the CPU's"}));
  const Json diff = tapedeck::test::tapedeck({"bench", "diff", save, save, "--json"}).json();
  CHECK(diff["rows"].size() > 20);
  CHECK(diff["only_before"].empty());  // each key stands once
  CHECK(diff["only_after"].empty());
  for (const Json& warning : diff["warnings"]) CHECK(contains(warning, "busy"));
  for (const Json& row : diff["rows"]) CHECK(row["ratio"] == doctest::Approx(1));
}
