// What --resume allows and what it refuses.
#include "apps/record.h"
#include "ops/schedule.h"
#include "tests/runs.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;
namespace fs = std::filesystem;

TEST_CASE("resume: a finished run says so, exits with 0 and stays as it is") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(run_tapedeck(small + Words{"--steps", "30", "--out", run}).code == exit_done);
  const auto before = contents(run);
  const Outcome outcome = run_tapedeck({"train", "--resume", run});
  CHECK(outcome.code == exit_done);
  CHECK(contains(outcome.out, "this run has ended (done at step 30)"));
  CHECK(contents(run) == before);
  CHECK(run_tapedeck({"train", "--resume", run, "--steps", "30", "--threads", "1"}).code ==
        exit_done);  // the same again
  CHECK(contents(run) == before);
}

// Fault: a resumed run quietly trains another model, on other data, with another batch.
TEST_CASE("resume: options that make it another run are refused with both values, unless forced") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(run_tapedeck(small + Words{"--steps", "30", "--out", run}).code == exit_done);
  const auto before = contents(run);
  const std::vector<std::tuple<const char*, const char*, const char*>> changes = {
      {"--hidden", "9", "8"},          {"--batch", "16", "32"},
      {"--data", "spirals", "blobs"},  {"--lr", "0.5", "0.001"},
      {"--dropout", "0.5", "0"},       {"--seed", "2", "1"},
      {"--optimizer", "sgd", "adam"},  {"--accumulate", "2", "1"},
      {"--precision", "fp64", "fp32"}, {"--schedule", "linear", "cosine"}};
  for (const auto& [option, now, was] : changes) {
    const Outcome outcome = run_tapedeck({"train", "--resume", run, "--steps", "60", option, now});
    INFO(outcome.err);
    CHECK(outcome.code == exit_usage);
    CHECK(contains(outcome.err, std::string(option) + " " + now));
    CHECK(contains(outcome.err, std::string("was made with ") + was));
    CHECK(contains(outcome.err, run));
    CHECK(contents(run) == before);
  }
  const Outcome forced = run_tapedeck({"train", "--resume", run, "--steps", "60", "--batch", "16", "--force"});
  INFO(forced.err);
  CHECK(forced.code == exit_done);
  CHECK(read_json(run + "/config.json")["batch"]["value"] == 16);
  CHECK(read_json(run + "/summary.json")["steps"] == 60);
  CHECK(contains(read_file(run + "/resumes.jsonl"), "\"batch\":{\"before\":\"32\",\"now\":\"16\"}"));
  const auto after = contents(run);
  const Outcome cannot_fit = run_tapedeck({"train", "--resume", run, "--steps", "90", "--hidden", "9", "--force"});
  CHECK(cannot_fit.code == exit_usage);  // Fault: without --force it was advised, and then it failed
  CHECK(contains(cannot_fit.err, "--hidden 9: the run in " + run +
                                     " was made with 8; leave --hidden away, or begin a "
                                     "new run with 9, whose weights have another shape"));
  CHECK(run_tapedeck({"train", "--resume", run, "--steps", "90", "--hidden", "9"}).err == cannot_fit.err);
  CHECK(contents(run) == after);  // still the run that it was
}

TEST_CASE("resume: what it excludes, and a folder without a run") {
  const TemporaryFolder folder;
  CHECK(contains(run_tapedeck({"train", "--resume", folder / "none"}).err, "holds no run"));
  CHECK(run_tapedeck({"train", "--resume", folder.path()}).code == exit_usage);
  REQUIRE(run_tapedeck(small + Words{"--steps", "10", "--out", folder / "run"}).code == exit_done);
  for (const Words& other :
       {Words{"--out", folder / "other"}, Words{"--config", folder / "run/config.json"}, Words{"--dry-run"}}) {
    const Outcome outcome = run_tapedeck(Words{"train", "--resume", folder / "run"} + other);
    CHECK(outcome.code == exit_usage);
    CHECK(contains(outcome.err, "exclude each other"));
  }
}

// Fault: the length of a decay is counted anew after a resume, and the rate jumps up.
TEST_CASE("resume: another length keeps the rate that the run has, and says old and new") {
  for (const Schedule::Kind kind : {Schedule::Kind::cosine, Schedule::Kind::linear, Schedule::Kind::constant})
    for (const int64_t warmup : {0, 5, 70}) {
      const Schedule old{.kind = kind, .base = 1e-3, .warmup = warmup, .total = 100};
      for (const int64_t total : {60, 100, 200, 5000}) {
        const Schedule now = old.bent(50, total);
        CHECK(now.rate(50) == old.rate(50));
        if (total >= 100 && warmup < 50) CHECK(std::abs(now.rate(51) / now.rate(50) - 1) < 0.05);
        for (int64_t step = 51; step < total && warmup < 50; ++step) CHECK(now.rate(step) <= now.rate(step - 1));
        if (kind != Schedule::Kind::constant && warmup < total - 1) CHECK(now.rate(total - 1) == doctest::Approx(1e-4));
        CHECK(now.bent(55, 300).rate(55) == now.rate(55));  // and once more
      }
      CHECK(old.bent(50, 100).rate(99) == doctest::Approx(old.rate(99)));
    }

  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(run_tapedeck(small + Words{"--steps", "50", "--out", run, "--log-every", "1"}).code == exit_done);
  const Outcome outcome = run_tapedeck({"train", "--resume", run, "--steps", "80"});
  CHECK(outcome.code == exit_done);
  CHECK(contains(outcome.err, "the run now ends at step 80 instead of 50"));
  const std::vector<double> rates = curve(run, "lr");
  REQUIRE(rates.size() == 80);
  CHECK(rates[50] == doctest::Approx(rates[49]));
  const auto before = contents(run);
  const Outcome shorter = run_tapedeck({"train", "--resume", run, "--steps", "20"});
  CHECK(shorter.code == exit_usage);
  CHECK(contains(shorter.err, "is at step 80 already"));
  CHECK(contents(run) == before);
}

// Fault: checkpoints were removed to save space, and resuming quietly begins the finished run anew over its results.
TEST_CASE("resume: a finished run without checkpoints is not begun anew unless forced") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(run_tapedeck(small + Words{"--steps", "30", "--out", run}).code == exit_done);
  fs::remove_all(run + "/checkpoint");
  const auto before = contents(run);
  const Outcome outcome = run_tapedeck({"train", "--resume", run, "--steps", "60"});
  CHECK(outcome.code == exit_usage);
  CHECK(contains(outcome.err, "has no checkpoint any more"));
  CHECK(contents(run) == before);
  CHECK(run_tapedeck({"train", "--resume", run, "--steps", "60", "--force"}).code == exit_done);
}

// Fault: killed between its weights and its last checkpoint, a run was said to have ended, and could not go on.
TEST_CASE("resume: a run that stops as it saves its weights has its last checkpoint") {
  const TemporaryFolder folder;
  const std::string run = folder / "run", in_the_way = run + "/model.safetensors.tmp";
  fs::create_directories(in_the_way);
  CHECK(run_tapedeck(small + Words{"--steps", "30", "--out", run}).code == exit_failed);
  CHECK_FALSE(fs::exists(run + "/summary.json"));
  fs::remove(in_the_way);
  const Outcome outcome = run_tapedeck({"train", "--resume", run});
  CHECK(outcome.code == exit_done);
  CHECK(contains(outcome.err, "going on from step-00000030"));
}

// Fault: a run goes on with data that is not the one it began with.
TEST_CASE("resume: data that has changed is refused with both, unless forced") {
  const TemporaryFolder folder;
  const auto write = [&](const char* last) {
    std::ofstream csv(folder / "points.csv");
    csv << "x,y,kind\n";
    for (int i = 0; i < 60; ++i) csv << i << "," << (i * 7) % 11 << "," << (i % 2 ? "odd" : "even") << "\n";
    csv << last << "\n";
  };
  write("60,1,even");
  const std::string run = folder / "run";
  REQUIRE(
      run_tapedeck({"train", "--data", "csv:" + folder / "points.csv", "--batch", "8", "--steps", "20", "--out", run})
          .code == exit_done);
  write("61,1,even");
  const Outcome changed = run_tapedeck({"train", "--resume", run, "--steps", "30"});
  CHECK(changed.code == exit_usage);
  CHECK(contains(changed.err, "the data has changed"));
  CHECK(contains(changed.err, "61 rows"));
  CHECK(run_tapedeck({"train", "--resume", run, "--steps", "30", "--force"}).code == exit_done);
  CHECK(run_tapedeck({"train", "--resume", run, "--steps", "35"}).code == exit_done);  // it is its data from now on
  fs::remove(folder / "points.csv");
  CHECK(run_tapedeck({"train", "--resume", run, "--steps", "40"}).code == exit_failed);
}

// Fault: config.json was edited by hand, and the run goes on as another one.
TEST_CASE("resume: an edited config.json does not agree with the checkpoint") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(run_tapedeck(small + Words{"--steps", "30", "--out", run}).code == exit_done);
  Json config = read_json(run + "/config.json");
  config["lr"]["value"] = 0.5;
  std::ofstream(run + "/config.json") << config.dump();
  const Outcome outcome = run_tapedeck({"train", "--resume", run, "--steps", "60"});
  INFO(outcome.err);
  CHECK(outcome.code == exit_usage);
  CHECK(contains(outcome.err, "config.json says --lr 0.5"));
  CHECK(contains(outcome.err, "0.001"));
  CHECK(run_tapedeck({"train", "--resume", run, "--steps", "60", "--force"}).code == exit_done);
}

TEST_CASE("resume: a new length in steps takes the place of the epochs, and the other way round") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(run_tapedeck(small + Words{"--epochs", "1", "--out", run}).code == exit_done);  // 100 steps
  REQUIRE(run_tapedeck({"train", "--resume", run, "--steps", "130"}).code == exit_done);
  CHECK(read_json(run + "/summary.json")["steps"] == 130);
  REQUIRE(run_tapedeck({"train", "--resume", run, "--epochs", "2"}).code == exit_done);
  CHECK(read_json(run + "/summary.json")["steps"] == 200);
}

// Fault: two processes write to one folder, and each destroys the other's files.
TEST_CASE("resume: a folder belongs to one process at a time") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(run_tapedeck(small + Words{"--steps", "20", "--out", run}).code == exit_done);
  const auto before = contents(run);
  const FolderLock other(run);
  for (const Words& words :
       {Words{"train", "--resume", run, "--steps", "40"}, small + Words{"--steps", "20", "--out", run, "--force"}}) {
    const Outcome outcome = run_tapedeck(words);
    CHECK(outcome.code == exit_usage);
    CHECK(contains(outcome.err, "another process"));
    CHECK(contents(run) == before);
  }
}
