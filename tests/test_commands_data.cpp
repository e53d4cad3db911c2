// tapedeck data and tapedeck info, through the command line.
#include <algorithm>
#include <filesystem>
#include <numeric>

#include "data/catalog.h"
#include "data/loader.h"
#include "tests/environment.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

TEST_CASE("data list names every data set that can be loaded") {
  const Json sets = tapedeck::test::tapedeck({"data", "list", "--json"}).json()["data"];
  const std::string text = tapedeck::test::tapedeck({"data", "list"}).out;
  REQUIRE(sets.size() == data_kinds().size());
  for (const Json& set : sets)
    for (const char* key : {"name", "what", "size", "origin"}) CHECK(contains(text, set[key].get<std::string>()));
  for (const DataKind& kind : data_kinds())
    if (!kind.takes_file && !kind.takes_task && !kind.needs_folder)
      CHECK(tapedeck::test::tapedeck({"data", "info", kind.name}).code == exit_done);
}

TEST_CASE("data info says what is in a data set") {
  const Json info = tapedeck::test::tapedeck({"data", "info", "digits", "--json"}).json();
  CHECK(info["rows"] == 1797);
  CHECK(info["features"] == 64);
  CHECK(info["classes"] == 10);
  CHECK(info["range"][0] == 0.0);
  CHECK(info["range"][1].get<double>() > 0);
  const std::vector<std::pair<const char*, int>> sizes = {{"train", 1078}, {"validation", 359}, {"test", 360}};
  for (const auto& [split, rows] : sizes) {
    const auto counts = info["splits"][split]["class_counts"].get<std::vector<int>>();
    CHECK(info["splits"][split]["rows"] == rows);
    CHECK(counts.size() == 10);
    CHECK(std::accumulate(counts.begin(), counts.end(), 0) == rows);
  }
  const std::string text = tapedeck::test::tapedeck({"data", "info", "spirals", "--validation", "0.25"}).out;
  INFO(text);
  for (const char* part : {"spirals", "3000", "classes   3", "train", "750"}) CHECK(contains(text, part));
}

TEST_CASE("data info --order prints the order in which a run sees its examples") {
  const auto order = [](const char* seed, const char* epoch) {
    return tapedeck::test::tapedeck({"data", "info", "blobs", "--seed", seed, "--order", epoch, "--json"})
        .json()
        .get<std::vector<int32_t>>();
  };
  const Dataset blobs = load_dataset("blobs");
  CHECK(order("4", "2") == epoch_order(blobs.train, 4, 2));
  CHECK(order("4", "2") != order("4", "3"));
  CHECK(order("4", "2") != order("5", "2"));

  std::istringstream lines(tapedeck::test::tapedeck({"data", "info", "blobs", "--seed", "4", "--order", "2"}).out);
  std::vector<int32_t> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(std::stoi(line));
  CHECK(rows == order("4", "2"));
}

TEST_CASE("data info refuses what is not there in one sentence") {
  const Outcome unknown = tapedeck::test::tapedeck({"data", "info", "digit"});
  CHECK(unknown.code == exit_usage);
  CHECK(contains(unknown.err, "digits"));
  const TemporaryFolder folder;
  const Outcome missing = tapedeck::test::tapedeck({"data", "info", "mnist", "--data-dir", folder.path()});
  CHECK(missing.code == exit_failed);
  CHECK(contains(missing.err, "train-images"));
}

// Fault: a cache that holds rubbish, or that cannot be written, ended the program.
TEST_CASE("info names processor, build and devices, and the peaks with their n, median and how") {
  const TemporaryFolder cache;
  const Environment place("XDG_CACHE_HOME", cache.path());
  std::filesystem::create_directories(cache / "tapedeck");
  std::ofstream(cache / "tapedeck/peaks.json") << R"({"format_version": "1", "peaks": 3})";
  const Json info = tapedeck::test::tapedeck({"info", "--json", "--threads", "1"}).json();
  CHECK(info["machine"]["threads"] == 1);
  for (const char* key : {"processor", "compiler", "flags", "libraries"})
    CHECK(info["machine"][key].get<std::string>() != "");
  CHECK(info["devices"].size() >= 3);  // cpu, emulated, and each GPU or why there is none
  CHECK(info["load"].get<std::string>().size() > 10);
  for (const char* key : {"gemm_gflops", "copy_gb_per_s"}) {
    const Json& peak = info["peaks"][key];
    CHECK(peak["median"] > 0.0);
    CHECK(peak["best"] >= peak["median"]);
    CHECK(peak["n"] >= 5);
    CHECK(peak["how"].get<std::string>() != "");
  }
  CHECK(read_json(cache / "tapedeck/peaks.json")["peaks"].size() == 1);

  const Environment nowhere("XDG_CACHE_HOME", "/dev/null");  // no folder can be made in it, not even by root
  const std::string text = tapedeck::test::tapedeck({"info", "--threads", "1"}).out;
  INFO(text);
  for (const char* part :
       {"processor", "cores", "cpu:", "cuda", "emulated:", "GFLOP/s", "GB/s", "n = ", "median", "load"})
    CHECK(contains(text, part));
}
