// tapedeck bench loader: every way of loading has its row, and nothing stays behind.
#include <filesystem>

#include "tests/environment.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

TEST_CASE("bench loader: every way of loading has a row with its bound, and the files go away") {
  const TemporaryFolder folder;
  const Environment tmpdir("TMPDIR", folder.path().c_str());
  const std::string saved = folder / "saved.json";
  const Outcome run = tapedeck::test::tapedeck({"bench", "loader", "--rounds", "2", "--steps", "2", "--hidden", "8",
                                                "--batch", "100", "--prefetch", "1", "--save", saved});
  INFO(run.err);
  REQUIRE(run.code == exit_done);
  for (const char* part :
       {"memory", "csv", "shard", "resident", "in order", "shuffled", "by default", "compute (--threads)"})
    CHECK(contains(run.out, part));

  const Json document = read_json(saved);
  CHECK(document["agree"] == true);
  CHECK(document["parsing"]["share"] > 0);
  CHECK(document["parsing"]["cut_by_shard"]["n"] == 2);
  std::string ways;
  for (const Json& row : document["rows"]) {
    if (row["name"] != "loader") {
      CHECK(row["ratio_low"] <= row["ratio"]);
      CHECK(row["ratio"] <= row["ratio_high"]);
      CHECK(row["n"] == 2);
      continue;
    }
    const std::string data = row["data"];
    ways += data;
    CHECK(row["n"] == 4);
    if (data == "resident") continue;
    const int workers = row["workers"];
    const double load = row["load_ms"], compute = document["compute_ms"];
    ways += std::to_string(workers) + " ";
    CHECK(row["bound_ms"] == (workers ? std::max(load / workers, compute) : load + compute));
    CHECK(row["over_bound"] == row["mean_ms"].get<double>() / row["bound_ms"].get<double>());
    if (data != "csv" || workers != 0) continue;
    CHECK(document["parsing"]["share"] == doctest::Approx(load / row["mean_ms"].get<double>()));
    CHECK(document["parsing"]["step_over_parts"] == doctest::Approx(row["over_bound"].get<double>()));
  }
  CHECK(ways == "memory0 memory1 csv0 csv1 csv2 shard0 shard1 shard2 resident");

  std::filesystem::remove(saved);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("bench loader: a batch larger than the data is refused, and the files go away") {
  const TemporaryFolder folder;
  const Environment tmpdir("TMPDIR", folder.path().c_str());
  const Outcome run = tapedeck::test::tapedeck({"bench", "loader", "--batch", "9000", "--hidden", "8"});
  CHECK(run.code == exit_usage);
  CHECK(contains(run.err, "batch 9000: larger than the training split of 8,064 rows"));
  CHECK(std::filesystem::is_empty(folder.path()));
}
