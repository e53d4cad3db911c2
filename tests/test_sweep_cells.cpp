// tapedeck sweep as a program: what its cells come to, and what is refused.
#include <set>

#include "tests/sweep_runs.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;
namespace fs = std::filesystem;

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
        for (std::string line; std::getline(lines, line); history = true) CHECK(Json::accept(line));
      }
    CHECK(history);
  }
  CHECK(diverged == 3 * 5);  // at each size one that looks for a rate that reaches, and four of the grid
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
  Words words = plain_sweep + Words{"--out", folder / "s"};
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

TEST_CASE(
    "sweep: with --horizon each size has the fewest steps to each target, one search runs twice, and all say so") {
  const TemporaryFolder folder;
  const Words words = horizon_sweep + Words{"--json", "--out", folder / "s"};
  const Outcome done = run_tapedeck(words);
  REQUIRE(done.code == exit_done);
  const Json document = done.json();
  CHECK(document["kind"] == "fixed horizon");
  for (const Json& size : document["sizes"]) {
    INFO(size.dump());
    REQUIRE(size["horizon_intervals"].size() == 2);
    CHECK(size["horizon_intervals"][0]["target"] == 0.4);  // the loosest first
    CHECK(size["horizon_intervals"][1]["target"] == 0.25);
    CHECK(size["horizon_intervals"][0]["passed"] <= size["horizon_intervals"][1]["passed"]);
    CHECK(size["steps"]["median"] == size["horizon_intervals"][1]["passed"]);
    for (const Json& trial : size["horizons"]) CHECK((trial["target"] == 0.4 || trial["target"] == 0.25));
    CHECK(size["n"] == 3);
    CHECK(size["reached"] == 3);
    CHECK(size["tuned"][0]["steps"].is_null());
    CHECK(size["tuned"][0]["loss"].is_number());
  }
  std::set<int64_t> again;
  for (const Json& cell : document["cells"]) {
    CHECK(cell["crossings"].empty());
    if (cell["purpose"] == "again") again.insert(cell["batch"].get<int64_t>());
  }
  CHECK(again == std::set<int64_t>{256});
  REQUIRE(document["fits"].size() == 2);
  for (const Json& fit : document["fits"]) CHECK(fit["fit"]["n"] == 3);
  const Json& twice = document["again"]["horizons"];
  CHECK(document["again"]["batch"] == 256);
  CHECK(twice["first"]["passed"] == document["sizes"][1]["steps"]["median"]);
  CHECK(twice["second"]["passed"].is_number());
  CHECK(twice["agree"].is_boolean());
  CHECK(contains(read_file(folder / "s/report.html"), "searched twice"));
  CHECK(contains(read_file(folder / "s/report.html"), "B_crit by target"));

  // What is missing is planned and run again, and nothing else.
  for (const fs::path& cell : cells(folder / "s"))
    if (cell.filename().string().starts_with("again-b256") &&
        cell.filename().string().find("seed2000002") != std::string::npos)
      fs::remove_all(cell);
  const std::string plan = run_tapedeck(words + Words{"--plan"}).out;
  CHECK(std::count(plan.begin(), plan.end(), '\n') == 1);
  CHECK(contains(plan, "--batch 256"));
  CHECK(contains(plan, "--seed 2000002"));
  CHECK(run_tapedeck(words).json()["again"] == document["again"]);
}

// Fault: a summary without its curve counted as reached in one place and as missed in another.
TEST_CASE("sweep: a cell whose files are damaged is named, and one that was half made begins anew") {
  const TemporaryFolder folder;
  const Words words = plain_sweep + Words{"--out", folder / "s"};
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
  fs::remove(all[2] /
             "summary.json");  // killed as it saved the weights of a run that diverged, which has no checkpoint
  std::ofstream(all[2] / "model.safetensors") << "w";
  const Outcome again = run_tapedeck(words + Words{"--json"});
  REQUIRE(again.code == exit_done);
  CHECK(ended(folder / "s").size() == 12);
  for (const Json& cell : Json(again.json()["cells"])) CHECK(cell["status"] != "failed");
}

TEST_CASE("sweep: a target that is there from the first step on gives no law") {
  const TemporaryFolder folder;
  Words words = plain_sweep + Words{"--out", folder / "s"};
  *std::find(words.begin(), words.end(), "loss=0.25") = "loss=100";
  const Outcome done = run_tapedeck(words);
  CHECK(done.code == exit_done);
  CHECK(contains(done.out, "a tighter target is wanted"));
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
