// The cache of measured peaks: kept for this machine and build, and never a reason to fail.
#include "apps/peaks.h"

#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/machine.h"
#include "engine/device.h"
#include "tests/environment.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

struct Cache {
  Cache() : place("XDG_CACHE_HOME", folder.path()), file(folder / "tapedeck/peaks.json") {}
  void hold(const std::string& text) const {
    std::filesystem::create_directories(folder / "tapedeck");
    std::ofstream(file) << text;
  }
  TemporaryFolder folder;
  Environment place;
  std::string file;
};

}  // namespace

TEST_CASE("peaks that were measured are found again, for this thread count only") {
  const Cache cache;
  const Threads one(1);
  CHECK_FALSE(cached_peaks());
  const Peaks measured = measure_peaks();
  CHECK(measured.gemm.best > 0);
  CHECK(measured.gemm.best >= measured.gemm.median);
  CHECK(measured.copy.best > 0);
  CHECK(measured.copy.n >= 5);
  const auto cached = cached_peaks();
  REQUIRE(cached);
  CHECK(cached->gemm.best == measured.gemm.best);
  CHECK(cached->gemm.how == measured.gemm.how);
  CHECK(cached->copy.n == measured.copy.n);

  Json document = read_json(cache.file);
  CHECK(document["format_version"] == kFormatVersion);
  const std::string key = document["peaks"].begin().key();
  CHECK(contains(key, this_machine().processor));
  {
    const Threads two(2);
    CHECK((threads() == 1 || !cached_peaks()));
  }

  // The share of the peak that a run reports comes from here.
  const std::string out = cache.folder / "run";
  const Outcome trained = tapedeck::test::tapedeck(
      {"train", "--data", "blobs", "--steps", "3", "--out", out, "--threads", "1", "--quiet", "--json"});
  CHECK(trained.json()["peak_gflops"] == measured.gemm.best);

  for (const char* field : {"best", "n", "how"}) {  // an entry that lacks something counts as none
    Json broken = document;
    broken["peaks"][key]["gemm_gflops"].erase(field);
    cache.hold(broken.dump());
    CHECK_FALSE(cached_peaks());
  }
  document["peaks"][key] = "fast";
  cache.hold(document.dump());
  CHECK_FALSE(cached_peaks());
}

// Fault: a cache that is cut short, foreign or newer ended the program instead of costing a new measurement.
TEST_CASE("a cache of peaks that cannot be read counts as empty") {
  const Cache cache;
  for (const char* text : {"", "{", "[1, 2]", "null", "7", R"({"format_version": 2, "peaks": {}})",
                           R"({"format_version": "1", "peaks": {}})", R"({"format_version": 1})",
                           R"({"format_version": 1, "peaks": 3})", "\xff\xfe\x00\x01"}) {
    INFO(text);
    cache.hold(text);
    CHECK_FALSE(cached_peaks());
  }
  std::filesystem::remove(cache.file);
  std::filesystem::create_directories(cache.file);  // a folder in its place
  CHECK_FALSE(cached_peaks());
}
