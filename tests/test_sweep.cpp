// tapedeck sweep as a program: cells in folders, killed, gone on with, enlarged, divided.
#include <fmt/format.h>

#include <set>

#include "tests/process.h"
#include "tests/sweep_runs.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;
namespace fs = std::filesystem;

namespace {

// Every cell of the document is there once.
std::set<std::string> ids(const Json& document) {
  std::set<std::string> out;
  for (const Json& cell : document["cells"]) CHECK(out.insert(cell["id"]).second);
  return out;
}

}  // namespace

// Fault: a sweep that was killed and run again ran 40 cells of 20, or repeated those that had ended.
TEST_CASE("sweep: killed in its sixth cell and run again it has 12 cells, none twice, and a third run does nothing") {
  const TemporaryFolder folder;
  const Words words = plain_sweep + Words{"--out", folder / "sweep"};
  {
    Process process(words, folder.path());
    // The sixth has begun, and has not ended.
    REQUIRE(Process::within(
        60, [&] { return cells(folder / "sweep").size() == 6 && ended(folder / "sweep").size() == 5; }));
    process.signal(SIGKILL);
    REQUIRE(process.wait() == 128 + SIGKILL);
  }
  const auto first = ended(folder / "sweep");
  CHECK(first.size() == 5);
  const Outcome again = run_tapedeck(words + Words{"--json"});
  REQUIRE(again.code == exit_done);
  CHECK(ids(again.json()).size() == 12);
  CHECK(again.json()["status"] == "complete");
  const auto second = ended(folder / "sweep");
  CHECK(second.size() == 12);
  CHECK(cells(folder / "sweep").size() == 12);
  for (const auto& [cell, when] : first) CHECK(second.at(cell) == when);

  REQUIRE(run_tapedeck(words).code == exit_done);
  CHECK(ended(folder / "sweep") == second);

  SUBCASE("more seeds run the new cells alone") {
    const Outcome larger = run_tapedeck(words + Words{"--json", "--out"} + Words{folder / "sweep"});
    CHECK(larger.code == exit_usage);  // --out is given twice
    Words more = words;
    *std::find(more.begin(), more.end(), "3") = "4";
    REQUIRE(run_tapedeck(more).code == exit_done);
    const auto third = ended(folder / "sweep");
    CHECK(third.size() == 16);
    for (const auto& [cell, when] : second) CHECK(third.at(cell) == when);
  }
  SUBCASE("another base setting is refused with both values") {
    Words other = words;
    *std::find(other.begin(), other.end(), "8") = "16";
    const Outcome refused = run_tapedeck(other);
    CHECK(refused.code == exit_usage);
    CHECK(contains(refused.err, "--hidden 16"));
    CHECK(contains(refused.err, "begun with 8"));
    CHECK(ended(folder / "sweep") == second);
  }
  SUBCASE("other targets are refused, and so are targets that somebody has changed") {
    Words other = words;
    *std::find(other.begin(), other.end(), "loss=0.25") = "loss=0.3";
    CHECK(contains(run_tapedeck(other).err, "begun with loss=0.25"));
    Json targets = read_json(folder / "sweep/targets.json");
    targets["values"][0] = 0.4;
    std::ofstream(folder / "sweep/targets.json") << targets;
    const Outcome changed = run_tapedeck(words);
    CHECK(changed.code == exit_failed);
    CHECK(contains(changed.err, "does not fit its hash"));
  }
}

TEST_CASE("sweep: interrupted it says how to go on, and goes on where it was") {
  const TemporaryFolder folder;
  const Words words = plain_sweep + Words{"--out", folder / "sweep"};
  Process process(words, folder.path());
  REQUIRE(Process::within(60, [&] { return ended(folder / "sweep").size() == 3; }));
  process.signal(SIGINT);
  CHECK(process.wait() == exit_interrupted);
  CHECK(contains(process.err(), "the same command goes on"));
  CHECK(read_json(folder / "sweep/summary.json")["status"] == "incomplete");
  const auto before = ended(folder / "sweep");
  REQUIRE(run_tapedeck(words).code == exit_done);
  const auto after = ended(folder / "sweep");
  CHECK(after.size() == 12);
  for (const auto& [cell, when] : before)
    if (read_json(folder / ("sweep/cells/" + cell + "/summary.json"))["status"] != "interrupted")
      CHECK(after.contains(cell));
}

// Fault: whoever waits for a cell that failed elsewhere waits for ever.
TEST_CASE("sweep: a size that is too large for one part ends for all of them") {
  const TemporaryFolder folder;
  Process parallel({"sweep",   "--data",    "blobs",     "--hidden",   "64,64",          "--seeds", "2",
                    "--rates", "0.02,0.03", "--targets", "loss=0.25",  "--steps",        "50",      "--again",
                    "off",     "--quiet",   "--batches", "32,64,2048", "--memory-limit", "700KiB",  "--parallel",
                    "2",       "--threads", "1",         "--out",      folder / "s"},
                   folder.path());
  CHECK(parallel.wait() == exit_done);
  const Json document = read_json(folder / "s/summary.json");
  CHECK(document["status"] == "complete");
  CHECK(document["sizes"][2]["rate"].is_null());
  CHECK(document["timed"] == false);
  CHECK(contains(document["why_not_timed"], "side by side"));
}

TEST_CASE("sweep: the planned command lines give the cells that the sweep would have run") {
  const TemporaryFolder folder;
  const Outcome plan = run_tapedeck(plain_sweep + Words{"--plan", "--out", folder / "a"});
  REQUIRE(plan.code == exit_done);
  CHECK(!fs::exists(folder / "a"));  // a list is all that was asked for
  std::istringstream lines(plan.out);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    Words words;
    std::istringstream parts(line);
    for (std::string word; parts >> word;) words.push_back(word);
    REQUIRE(words[0] == "tapedeck");
    words.erase(words.begin());
    const int code = run_tapedeck(words + Words{"--quiet"}).code;
    CHECK((code == exit_done || code == exit_target_not_reached));
  }
  CHECK(count == 12);
  const auto before = ended(folder / "a");
  const Outcome there = run_tapedeck(plain_sweep + Words{"--json", "--out", folder / "a"});
  CHECK(ended(folder / "a") == before);
  const Outcome alone = run_tapedeck(plain_sweep + Words{"--json", "--out", folder / "b"});
  for (size_t i = 0; i < 12; ++i) {
    const Json by_hand = there.json()["cells"][i], by_sweep = alone.json()["cells"][i];
    CHECK(by_hand["crossings"][0]["upper"] == by_sweep["crossings"][0]["upper"]);
    CHECK(by_hand["began"].is_null());
    CHECK(by_sweep["began"].is_number());
    CHECK(by_sweep["side_by_side"] == false);
  }
  CHECK(there.json()["fit"]["b_crit"] == alone.json()["fit"]["b_crit"]);
}

TEST_CASE("sweep: a plan of a sweep that is there lists what is left and what failed, and changes nothing") {
  const TemporaryFolder folder;
  const Words words = plain_sweep + Words{"--out", folder / "s"};
  REQUIRE(run_tapedeck(words).code == exit_done);
  const fs::path one = cells(folder / "s").front(), other = cells(folder / "s").back();
  fs::remove_all(one);
  std::ofstream(other / "failure.json") << R"({"format_version": 1, "reason": "no room", "out_of_memory": true})";
  std::map<fs::path, fs::file_time_type> before, after;
  const auto take = [&](auto& into) {
    for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
      into[entry.path()] = fs::last_write_time(entry.path());
  };
  take(before);
  const Outcome plan = run_tapedeck(words + Words{"--plan"});
  take(after);
  CHECK(before == after);
  CHECK(std::count(plan.out.begin(), plan.out.end(), '\n') == 2);
  CHECK(contains(plan.out, one.filename().string()));
  CHECK(contains(plan.out, other.filename().string()));
  Words wider = words + Words{"--plan"};
  *std::find(wider.begin(), wider.end(), "8") = "16";
  CHECK(contains(run_tapedeck(wider).err, "begun with 8"));
}

TEST_CASE("sweep: two parts on one folder share the cells, and so do cells side by side") {
  const TemporaryFolder folder, elsewhere;
  const Words tuned = {"sweep",     "--data",  "blobs", "--hidden",  "8",         "--batches",
                       "32,128",    "--seeds", "2",     "--targets", "loss=0.25", "--rates",
                       "0.01,0.03", "--steps", "300",   "--quiet",   "--threads", "1"};
  Process first(tuned + Words{"--out", folder / "s", "--part", "1/2"}, folder.path());
  Process second(tuned + Words{"--out", folder / "s", "--part", "2/2"}, elsewhere.path());
  CHECK(first.wait() == exit_done);
  CHECK(second.wait() == exit_done);
  const int expected = 2 * 2 * 4 + 2 * 2 + 2;  // tuned with four runs a rate, two runs a size, one size again
  CHECK(cells(folder / "s").size() == expected);

  Process parallel(tuned + Words{"--out", folder / "p", "--parallel", "2"}, folder.path());
  CHECK(parallel.wait() == exit_done);
  CHECK(cells(folder / "p").size() == expected);
  const Json side_by_side = read_json(folder / "p/summary.json"), parts = read_json(folder / "s/summary.json");
  CHECK(side_by_side["timed"] == false);
  for (const Json& cell : side_by_side["cells"]) CHECK(cell["side_by_side"] == true);
  CHECK(side_by_side["fit"] == parts["fit"]);
  for (size_t i = 0; i < side_by_side["sizes"].size(); ++i)
    CHECK(side_by_side["sizes"][i]["steps"] == parts["sizes"][i]["steps"]);
}

TEST_CASE(
    "sweep: with --horizon, two targets and one search twice, two parts and a sweep that was killed give the same") {
  const TemporaryFolder folder, elsewhere;
  const Words words = horizon_sweep + Words{"--threads", "1"};
  {
    Process process(words + Words{"--out", folder / "k"}, folder.path());
    REQUIRE(Process::within(60, [&] { return ended(folder / "k").size() >= 35; }));
    process.signal(SIGKILL);
    REQUIRE(process.wait() == 128 + SIGKILL);
  }
  const auto before = ended(folder / "k");
  const Json killed = run_tapedeck(words + Words{"--json", "--out", folder / "k"}).json();
  for (const auto& [cell, when] : before) CHECK(ended(folder / "k").at(cell) == when);

  Process first(words + Words{"--out", folder / "s", "--part", "1/2"}, folder.path());
  Process second(words + Words{"--out", folder / "s", "--part", "2/2"}, elsewhere.path());
  CHECK(first.wait() == exit_done);
  CHECK(second.wait() == exit_done);
  const Json parts = read_json(folder / "s/summary.json");
  CHECK(parts["status"] == "complete");
  CHECK(ids(killed) == ids(parts));
  CHECK(cells(folder / "k").size() == ids(killed).size());
  CHECK(killed["again"] == parts["again"]);
  CHECK(killed["again"]["horizons"]["agree"].is_boolean());
  for (size_t i = 0; i < 3; ++i) CHECK(killed["sizes"][i]["horizons"] == parts["sizes"][i]["horizons"]);
}

TEST_CASE("sweep: where a part is killed the others stop waiting for it, and the sweep ends all the same") {
  const TemporaryFolder folder;
  Process parallel(plain_sweep + Words{"--out", folder / "s", "--parallel", "2"}, folder.path());
  REQUIRE(Process::within(60, [&] { return ended(folder / "s").size() >= 2; }));
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", parallel.id()));
  pid_t part = 0;
  children >> part;
  REQUIRE(part > 0);
  kill(part, SIGKILL);
  CHECK(parallel.wait() == exit_done);
  CHECK(contains(parallel.err(), "a part of the sweep failed or was killed"));
  CHECK(ended(folder / "s").size() == 12);
}

TEST_CASE("sweep: a budget ends a sweep early, a larger one goes on, and what is left over is spent") {
  const TemporaryFolder folder;
  const Words words = plain_sweep + Words{"--json", "--out", folder / "s"};
  const Outcome early = run_tapedeck(words + Words{"--budget", "0.001s"});
  CHECK(early.code == exit_done);
  CHECK(early.json()["status"] == "incomplete");
  const size_t few = ended(folder / "s").size();
  CHECK(few < 12);
  double seconds = 0;
  REQUIRE(run_tapedeck(plain_sweep + Words{"--out", folder / "s"}).code == exit_done);
  CHECK(ended(folder / "s").size() == 12);
  const Json complete = read_json(folder / "s/summary.json");
  for (const Json& cell : complete["cells"]) seconds += cell["wall_seconds"].get<double>();
  const Outcome more = run_tapedeck(words + Words{"--budget", fmt::format("{}s", seconds + 0.1)});
  CHECK(more.code == exit_done);
  CHECK(more.json()["status"] == "complete");
  const size_t with_extras = more.json()["cells"].size();
  CHECK(with_extras > 12);
  const Outcome without = run_tapedeck(words);  // what is there counts, whoever looks
  CHECK(without.json()["cells"].size() == with_extras);
}
