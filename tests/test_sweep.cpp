// tapedeck sweep as a program: cells in folders, killed, gone on with, enlarged, divided.
#include <fmt/format.h>

#include <set>

#include "tests/process.h"
#include "tests/runs.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;
namespace fs = std::filesystem;

namespace {

// Nothing is to be found out: 4 sizes with 3 seeds, 12 cells.
const Words plain = {"sweep",         "--data",  "blobs", "--hidden", "8",    "--batches",
                     "32,64,128,256", "--seeds", "3",     "--rates",  "0.02", "--targets",
                     "loss=0.25",     "--steps", "300",   "--again",  "off",  "--quiet"};

std::vector<fs::path> cells(const std::string& sweep) {
  std::vector<fs::path> out;
  if (fs::exists(sweep + "/cells"))
    for (const auto& entry : fs::directory_iterator(sweep + "/cells")) out.push_back(entry.path());
  return out;
}

std::map<std::string, fs::file_time_type> ended(const std::string& sweep) {
  std::map<std::string, fs::file_time_type> out;
  for (const fs::path& cell : cells(sweep))
    if (fs::exists(cell / "summary.json")) out[cell.filename()] = fs::last_write_time(cell / "summary.json");
  return out;
}

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
  const Words words = plain + Words{"--out", folder / "sweep"};
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
  const Words words = plain + Words{"--out", folder / "sweep"};
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

// Fault: a diverged cell printed nan into its line, so that the sweep could not read it and lost the divergence.
TEST_CASE("sweep: a cell that diverges is a result with its step, in strict JSON, and the others stand") {
  const TemporaryFolder folder;
  const Outcome done =
      run_tapedeck({"sweep",     "--data",  "blobs", "--hidden", "8",        "--optimizer", "sgd",       "--batches",
                    "32,64,128", "--seeds", "2",     "--rates",  "0.3,1e30", "--targets",   "loss=0.25", "--steps",
                    "200",       "--again", "off",   "--quiet",  "--json",   "--out",       folder / "s"});
  REQUIRE(done.code == exit_done);
  const Json document = done.json();
  int diverged = 0;
  for (const Json& cell : document["cells"]) {
    if (cell["rate"] != 1e30) continue;
    ++diverged;
    CHECK(cell["status"] == "diverged");
    CHECK(contains(cell["reason"], "diverged at step"));
    bool history = false;
    for (const fs::path& path : cells(folder / "s"))
      if (path.filename().string().starts_with(cell["id"].get<std::string>())) {
        std::ifstream lines(path / "metrics.jsonl");
        for (std::string line; std::getline(lines, line); history = true) CHECK_NOTHROW(Json::parse(line));
      }
    CHECK(history);
  }
  CHECK(diverged == 3 * 4);  // four runs of the rate at each size
  for (const Json& size : document["sizes"]) {
    CHECK(size["rate"] == 0.3);
    CHECK(size["reached"] == 2);
  }
}

// Fault: where trials ran nothing, every size "fitted"; the first that did not crashed the search.
TEST_CASE("sweep: sizes that do not fit into memory are listed, and the next runs as if alone") {
  const TemporaryFolder folder;
  const Words words = {"sweep",   "--data",  "blobs",     "--hidden",  "64,64",   "--seeds", "1",
                       "--rates", "0.02",    "--targets", "loss=0.25", "--steps", "50",      "--again",
                       "off",     "--quiet", "--json",    "--threads", "1"};
  const std::string limit = "700KiB";
  const Outcome mixed =
      run_tapedeck(words + Words{"--batches", "32,64,2048", "--memory-limit", limit, "--out", folder / "a"});
  REQUIRE(mixed.code == exit_done);
  std::map<int64_t, std::string> status;
  const Json document = mixed.json();
  for (const Json& cell : document["cells"]) status[cell["batch"]] = cell["status"];
  CHECK(status[2048] == "failed");
  CHECK(status[64] != "failed");
  for (const fs::path& cell : cells(folder / "a")) {
    if (!cell.filename().string().starts_with("run-b64")) continue;
    const Json here = read_json(cell / "summary.json");
    CHECK(here["steps"].get<int64_t>() > 0);
    const Outcome fresh =
        run_tapedeck(Words{"train", "--config", cell / "config.json", "--json", "--quiet", "--out", folder / "f"});
    CHECK(fresh.json()["memory"]["peak_bytes"] == here["memory"]["peak_bytes"]);
    CHECK(fresh.json()["final"] == here["final"]);
  }

  const Outcome none =
      run_tapedeck(words + Words{"--batches", "1024,2048,3000", "--memory-limit", limit, "--out", folder / "b"});
  CHECK(none.code == exit_out_of_memory);
  const Json too_large = none.json();
  CHECK(too_large["cells"].size() == 3);
  for (const Json& cell : too_large["cells"]) CHECK(cell["status"] == "failed");
}

// Fault: what an epoch has left over makes steps of another size, so that a size of 1,024 among 1,078 examples is 539.
TEST_CASE(
    "train --drop-last: every step has the same number of examples, on a device as on the cpu, and after a resume") {
  const TemporaryFolder folder;
  const Words words = {"train",   "--data", "blobs",       "--hidden", "8",
                       "--batch", "1000",   "--drop-last", "--quiet",  "--json"};
  const Json cpu = run_tapedeck(words + Words{"--steps", "8", "--out", folder / "cpu"}).json();
  CHECK(cpu["examples"] == 8000);
  const Json emulated =
      run_tapedeck(words + Words{"--steps", "8", "--device", "emulated", "--out", folder / "e"}).json();
  CHECK(emulated["examples"] == 8000);
  CHECK(emulated["final"]["validation_loss"].get<double>() ==
        doctest::Approx(cpu["final"]["validation_loss"].get<double>()).epsilon(1e-4));
  for (const char* device : {"cpu", "emulated"}) {
    const std::string part = folder / (std::string("part-") + device);
    run_tapedeck(words + Words{"--schedule", "constant", "--steps", "4", "--device", device, "--out", part});
    run_tapedeck({"train", "--resume", part, "--steps", "8", "--quiet"});
    const std::string whole = folder / (std::string("whole-") + device);
    run_tapedeck(words + Words{"--schedule", "constant", "--steps", "8", "--device", device, "--out", whole});
    CHECK(read_file(part + "/model.safetensors") == read_file(whole + "/model.safetensors"));
  }
  const Outcome none = run_tapedeck(words + Words{"--accumulate", "4", "--out", folder / "none"});
  CHECK(none.code == exit_usage);
  CHECK(contains(none.err, "a step takes 4000 examples and blobs has only 3200"));
}

TEST_CASE("sweep: with nothing but a target it finds its rates, with nothing but data its target too") {
  const TemporaryFolder folder;
  const Words words = {"sweep",   "--data", "blobs",    "--hidden", "8",       "--batches", "64,256",
                       "--seeds", "2",      "--epochs", "3",        "--quiet", "--json"};
  const Outcome given = run_tapedeck(words + Words{"--targets", "loss=0.3,loss=0.2", "--out", folder / "a"});
  REQUIRE(given.code == exit_done);
  const Json document = given.json();
  CHECK(document["targets"]["source"] == "given");
  CHECK(document["fits"].size() == 2);
  for (const Json& size : document["sizes"]) {
    CHECK(size["tuned"].size() >= 9);
    CHECK(size["rate"].is_number());
    CHECK(size["n"] == 2);
  }
  CHECK(fs::exists(folder / "a/report.html"));

  const Outcome found = run_tapedeck(words + Words{"--preset", "standard", "--out", folder / "b"});
  REQUIRE(found.code == exit_done);
  CHECK(found.json()["targets"]["source"] == "pilot");
  CHECK(contains(found.json()["targets"]["pilot"], "pilot-b32"));
  CHECK(found.json()["targets"]["hash"] == read_json(folder / "b/targets.json")["hash"]);

  // Fault: once its own targets were stored it judged its pilots by them, and ran all anew.
  const auto before = ended(folder / "b");
  REQUIRE(run_tapedeck(words + Words{"--preset", "standard", "--out", folder / "b"}).code == exit_done);
  CHECK(ended(folder / "b") == before);

  const Outcome far = run_tapedeck(words + Words{"--targets", "loss=0.001", "--out", folder / "c"});
  CHECK(far.code == exit_failed);
  CHECK(contains(far.err, "the pilot did not reach loss=0.001 in 300 steps"));
}

// Fault: seeds that change nothing, and a mean over runs that did not all reach the target.
TEST_CASE("sweep: each seed has its own curve, and a target that nobody reaches is said as 0 of n") {
  const TemporaryFolder folder;
  Words words = plain + Words{"--out", folder / "s"};
  *std::find(words.begin(), words.end(), "loss=0.25") = "loss=0.001";
  const Outcome done = run_tapedeck(words);
  REQUIRE(done.code == exit_done);
  CHECK(contains(done.out, "0/3"));
  CHECK(contains(done.out, "not reached"));
  CHECK(contains(done.out, "no law"));
  std::set<std::vector<double>> curves;
  for (const fs::path& cell : cells(folder / "s"))
    if (cell.filename().string().starts_with("run-b64-")) curves.insert(curve(cell, "validation_loss"));
  CHECK(curves.size() == 3);
}

TEST_CASE("sweep: with --horizon each size has the fewest steps whose seeds pass, and the page says so") {
  const TemporaryFolder folder;
  const Outcome done =
      run_tapedeck({"sweep",   "--data",    "blobs",     "--hidden", "8",     "--batches", "64,256,1024",
                    "--seeds", "3",         "--horizon", "--epochs", "3",     "--targets", "loss=0.25",
                    "--rates", "0.01,0.03", "--quiet",   "--json",   "--out", folder / "s"});
  REQUIRE(done.code == exit_done);
  const Json document = done.json();
  CHECK(document["kind"] == "fixed horizon");
  for (const Json& size : document["sizes"]) {
    INFO(size.dump());
    CHECK(size["horizons"].size() >= 1);
    CHECK(size["n"] == 3);
    CHECK(size["reached"] == 3);
    CHECK(size["tuned"][0]["steps"].is_null());
    CHECK(size["tuned"][0]["loss"].is_number());
  }
  for (const Json& cell : document["cells"]) CHECK(cell["crossings"].empty());
  CHECK(document["fit"]["n"] == 3);
  CHECK(fs::exists(folder / "s/report.html"));
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
  const Outcome plan = run_tapedeck(plain + Words{"--plan", "--out", folder / "a"});
  REQUIRE(plan.code == exit_done);
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
  const Outcome there = run_tapedeck(plain + Words{"--json", "--out", folder / "a"});
  CHECK(ended(folder / "a") == before);
  const Outcome alone = run_tapedeck(plain + Words{"--json", "--out", folder / "b"});
  for (size_t i = 0; i < 12; ++i)
    CHECK(there.json()["cells"][i]["crossings"][0]["upper"] == alone.json()["cells"][i]["crossings"][0]["upper"]);
  CHECK(there.json()["fit"]["b_crit"] == alone.json()["fit"]["b_crit"]);
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
  CHECK(side_by_side["fit"] == parts["fit"]);
  for (size_t i = 0; i < side_by_side["sizes"].size(); ++i)
    CHECK(side_by_side["sizes"][i]["steps"] == parts["sizes"][i]["steps"]);
}

// Fault: a summary without its curve counted as reached in one place and as missed in another.
TEST_CASE("sweep: a cell whose files are damaged is named, and one that was half made begins anew") {
  const TemporaryFolder folder;
  const Words words = plain + Words{"--out", folder / "s"};
  REQUIRE(run_tapedeck(words).code == exit_done);
  const auto all = cells(folder / "s");
  const std::string metrics = (all[0] / "metrics.jsonl").string(), intact = read_file(metrics);
  const std::string cut = intact.substr(0, intact.find('\n') + 1);
  for (const std::string& damaged : Words{"", "{\n", "{\"step\":\"x\",\"validation_loss\":1}\n", cut}) {
    std::ofstream(metrics) << damaged;
    const Outcome refused = run_tapedeck(words);
    INFO(refused.err);
    CHECK(refused.code == exit_failed);
    CHECK(contains(refused.err, "remove this run's folder, and it runs again"));
    CHECK(!contains(refused.err, ".cpp"));
  }
  std::ofstream(metrics) << intact;
  fs::remove(all[0] / "config.json"), fs::remove(all[0] / "summary.json");
  fs::remove(all[1] / "summary.json");
  std::ofstream(all[1] / "config.json") << "{";
  const Outcome again = run_tapedeck(words + Words{"--json"});
  REQUIRE(again.code == exit_done);
  CHECK(ended(folder / "s").size() == 12);
  for (const Json& cell : Json(again.json()["cells"])) CHECK(cell["status"] != "failed");
}

TEST_CASE("sweep: where a part is killed the others stop waiting for it, and the sweep ends all the same") {
  const TemporaryFolder folder;
  Process parallel(plain + Words{"--out", folder / "s", "--parallel", "2"}, folder.path());
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

TEST_CASE("sweep: a target that is there from the first step on gives no law") {
  const TemporaryFolder folder;
  Words words = plain + Words{"--out", folder / "s"};
  *std::find(words.begin(), words.end(), "loss=0.25") = "loss=100";
  const Outcome done = run_tapedeck(words);
  CHECK(done.code == exit_done);
  CHECK(contains(done.out, "a tighter target is wanted"));
}

TEST_CASE("sweep: a budget ends a sweep early, a larger one goes on, and what is left over is spent") {
  const TemporaryFolder folder;
  const Words words = plain + Words{"--json", "--out", folder / "s"};
  const Outcome early = run_tapedeck(words + Words{"--budget", "0.001s"});
  CHECK(early.code == exit_done);
  CHECK(early.json()["status"] == "incomplete");
  const size_t few = ended(folder / "s").size();
  CHECK(few < 12);
  double seconds = 0;
  REQUIRE(run_tapedeck(plain + Words{"--out", folder / "s"}).code == exit_done);
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

TEST_CASE("sweep: what cannot be is refused in a sentence before anything is made") {
  const TemporaryFolder folder;
  const auto refused = [&](const Words& words, const char* part) {
    const Outcome outcome = run_tapedeck(Words{"sweep", "--data", "blobs", "--out", folder / "s"} + words);
    INFO(outcome.err);
    CHECK(outcome.code == exit_usage);
    CHECK(contains(outcome.err, part));
  };
  refused({"--batches", "32,100000"}, "has only 3200 training examples");
  refused({"--batches", "32,33", "--accumulate", "2"}, "cannot cut it into equal parts");
  refused({"--batches", "64..8"}, "needs whole numbers");
  refused({"--schedule", "cosine"}, "does not know the end");
  refused({"--part", "3/2"}, "needs I/N");
  refused({"--part", "1/2", "--parallel", "2"}, "use one of them");
  refused({"--budget", "10"}, "such as 90s, 10min or 2h");
  refused({"--budget", "10s", "--parallel", "2"}, "leave one of them out");
  refused({"--rates", "0.1,0.1"}, "given twice");
  refused({"--targets", "loss=0.1,accuracy=0.9"}, "two metrics");
  refused({"--targets", "0.1"}, "needs accuracy=NUMBER");
  refused({"--target", "loss=0.1"}, "the nearest is --targets");
  refused({"--horizon", "--schedule", "constant"}, "knows no end");
  refused({"--horizon", "--budget", "10s"}, "leave one of them out");
  refused({"--preset", "fast"}, "one of quick, standard, publication");
  CHECK(!fs::exists(folder / "s/cells"));
  REQUIRE(run_tapedeck(small + Words{"--steps", "5", "--out", folder / "run"}).code == exit_done);
  CHECK(contains(run_tapedeck({"sweep", "--data", "blobs", "--out", folder / "run"}).err, "holds a run, and no sweep"));
}
