// What --resume allows, what it refuses, and what it does with a folder that has seen a crash.
#include <sys/mount.h>

#include "apps/checkpoint.h"
#include "apps/record.h"
#include "engine/safetensors.h"
#include "ops/schedule.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;
namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;
constexpr auto run_tapedeck = tapedeck::test::tapedeck;

Words operator+(Words words, const Words& more) { return words.insert(words.end(), more.begin(), more.end()), words; }

const Words small = {"train", "--data",       "blobs", "--hidden", "8", "--checkpoint-every",
                     "10",    "--eval-every", "25",    "--quiet"};

// Every file of a folder with its bytes.
std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) all[entry.path().string()] = read_file(entry.path().string());
  return all;
}

void flip_byte(const std::string& file, size_t at) {
  std::string bytes = read_file(file);
  bytes.at(at) = static_cast<char>(bytes[at] ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
}

}  // namespace

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
    CHECK(contains(outcome.err, was));
    CHECK(contains(outcome.err, run));
    CHECK(contents(run) == before);
  }
  const Outcome forced = run_tapedeck({"train", "--resume", run, "--steps", "60", "--batch", "16", "--force"});
  INFO(forced.err);
  CHECK(forced.code == exit_done);
  CHECK(read_json(run + "/config.json")["batch"]["value"] == 16);
  CHECK(read_json(run + "/summary.json")["steps"] == 60);
  CHECK(contains(read_file(run + "/resumes.jsonl"), "\"batch\":{\"before\":\"32\",\"now\":\"16\"}"));
  CHECK(run_tapedeck({"train", "--resume", run, "--steps", "90", "--hidden", "9", "--force"}).code ==
        exit_failed);  // cannot fit
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
  const Outcome shorter = run_tapedeck({"train", "--resume", run, "--steps", "20"});
  CHECK(shorter.code == exit_usage);
  CHECK(contains(shorter.err, "80"));
}

// Fault: a checkpoint that a crash or a disk has damaged is loaded, or makes the run unusable.
TEST_CASE("resume: a damaged checkpoint is named and the one before is used") {
  const TemporaryFolder folder;
  const std::string run = folder / "run", straight = folder / "straight";
  for (const std::string& out : {run, straight})
    REQUIRE(run_tapedeck(small + Words{"--steps", "55", "--out", out, "--schedule", "constant"}).code == exit_done);
  REQUIRE(run_tapedeck({"train", "--resume", straight, "--steps", "70"}).code == exit_done);
  const auto all = Checkpoints(run).list();
  REQUIRE(all.size() == 2);
  REQUIRE(all[0].filename() == "step-00000050");
  const auto pristine = contents(run);
  const auto put_back = [&] {
    fs::remove_all(run + "/checkpoint");
    for (const auto& [path, bytes] : pristine) {
      fs::create_directories(fs::path(path).parent_path());
      std::ofstream(path, std::ios::binary) << bytes;
    }
  };
  for (const char* file : {"state.json", "weights.safetensors", "training.safetensors", "best.safetensors"}) {
    const std::string path = (all[1] / file).string();
    put_back();
    const size_t size = read_file(path).size();
    for (const size_t at : {size_t(0), size / 2, size - 2}) {
      put_back();
      flip_byte(path, at);
      const Outcome outcome = run_tapedeck({"train", "--resume", run, "--steps", "70", "--quiet"});
      INFO((path + " at " + std::to_string(at) + ": " + outcome.err));
      CHECK(outcome.code == exit_done);
      CHECK(contains(outcome.err, path));
      CHECK(read_file(run + "/model.safetensors") == read_file(straight + "/model.safetensors"));
    }
    put_back();
    fs::remove(path);
    CHECK(run_tapedeck({"train", "--resume", run, "--steps", "70"}).code == exit_done);
  }
  put_back();
  for (const fs::path& one : all) fs::resize_file(one / "weights.safetensors", 100);
  const auto before = contents(run);
  const Outcome outcome = run_tapedeck({"train", "--resume", run, "--steps", "70"});
  CHECK(outcome.code == exit_failed);
  CHECK(contains(outcome.err, "no checkpoint can be read"));
  CHECK(contents(run)[run + "/metrics.jsonl"] == before.at(run + "/metrics.jsonl"));
}

TEST_CASE("resume: half a checkpoint and half a line of metrics, as a crash leaves them, do no harm") {
  const TemporaryFolder folder;
  const std::string run = folder / "run", straight = folder / "straight";
  REQUIRE(run_tapedeck(small + Words{"--steps", "80", "--out", straight, "--log-every", "7", "--schedule", "constant"})
              .code == exit_done);
  REQUIRE(
      run_tapedeck(small + Words{"--steps", "55", "--out", run, "--log-every", "7", "--schedule", "constant"}).code ==
      exit_done);
  fs::remove(run + "/summary.json");
  fs::create_directories(run + "/checkpoint/step-00000099.tmp");
  std::ofstream(run + "/checkpoint/step-00000099.tmp/state.json") << "{";
  std::ofstream(run + "/metrics.jsonl", std::ios::app) << "{\"step\": 56, \"exam";
  CHECK(run_tapedeck({"train", "--resume", run, "--steps", "80"}).code == exit_done);
  CHECK_FALSE(fs::exists(run + "/checkpoint/step-00000099.tmp"));
  CHECK(read_file(run + "/model.safetensors") == read_file(straight + "/model.safetensors"));
  CHECK(curve(run, "validation_loss").back() == curve(straight, "validation_loss").back());  // every line is JSON
  CHECK(Checkpoints(run).list().size() == 2);

  std::ofstream(run + "/metrics.jsonl") << "";  // lines that the checkpoint counts on are gone
  const Outcome lost = run_tapedeck({"train", "--resume", run, "--steps", "90"});
  CHECK(lost.code == exit_failed);
  CHECK(contains(lost.err, "metrics.jsonl: has 0 bytes"));
}

TEST_CASE("resume: a run that was killed before its first checkpoint begins anew") {
  const TemporaryFolder folder;
  const std::string run = folder / "run", straight = folder / "straight";
  for (const std::string& out : {run, straight})
    REQUIRE(run_tapedeck(small + Words{"--steps", "30", "--out", out}).code == exit_done);
  for (const char* file : {"summary.json", "model.safetensors", "best.safetensors"}) fs::remove(run + "/" + file);
  fs::remove_all(run + "/checkpoint");
  const Outcome outcome = run_tapedeck({"train", "--resume", run});
  CHECK(outcome.code == exit_done);
  CHECK(read_file(run + "/model.safetensors") == read_file(straight + "/model.safetensors"));
  CHECK(curve(run, "validation_loss") == curve(straight, "validation_loss"));
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
  fs::remove(folder / "points.csv");
  CHECK(run_tapedeck({"train", "--resume", run, "--steps", "40"}).code == exit_failed);
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

// Fault: weights that are not finite replace the last good checkpoint.
TEST_CASE("a run that diverges leaves its last good checkpoint") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const Outcome outcome =
      run_tapedeck({"train", "--data", "blobs", "--optimizer", "sgd", "--lr", "1e30", "--steps", "50", "--log-every",
                    "1", "--eval-every", "1", "--checkpoint-every", "1", "--hidden", "8,8", "--out", run});
  INFO(outcome.err);
  REQUIRE(outcome.code == exit_diverged);
  CHECK(contains(outcome.err, "seed 1: diverged"));
  for (const fs::path& one : Checkpoints(run).list())
    for (const auto& [name, tensor] :
         from_safetensors(read_checkpoint(one).files.at("weights.safetensors"), one.string()))
      for (const double value : tensor.doubles()) REQUIRE(std::isfinite(value));

  // Fault: one number that is not finite makes the file invalid, and the run cannot be shown at all.
  std::istringstream lines(read_file(run + "/metrics.jsonl"));
  Json last;
  for (std::string line; std::getline(lines, line);) last = Json::parse(line);
  CHECK(last["finite"] == false);
  CHECK(last["step"] == read_json(run + "/summary.json")["steps"]);
  CHECK(read_json(run + "/summary.json")["status"] == "diverged");
}

// Fault: the disk is full in the middle of a save, and the old checkpoint is gone as well; or the run says it saved.
TEST_CASE("a full disk: path and cause are named, and the last good checkpoint loads") {
  const TemporaryFolder folder;
  const std::string disk = folder / "disk";
  fs::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=512k") != 0) {
    std::cout << "skipped: mounting a tmpfs is not allowed here: " << std::strerror(errno) << "\n";
    return;
  }
  const std::string run = disk + "/run", ballast = disk + "/ballast";
  const Words plain = {"train", "--data", "blobs", "--hidden", "64,64", "--schedule", "constant", "--checkpoint-every",
                       "10",    "--quiet"};
  const Outcome first = run_tapedeck(plain + Words{"--out", run, "--steps", "20"});
  INFO(first.err);
  CHECK(first.code == exit_done);
  {
    std::ofstream fill(ballast, std::ios::binary);
    while (fill.write("0123456789abcdef", 16).flush()) {}
  }
  const Outcome full = run_tapedeck({"train", "--resume", run, "--steps", "60"});
  INFO(full.err);
  CHECK(full.code == exit_failed);
  CHECK(contains(full.err, disk));
  CHECK(contains(full.err, "No space left on device"));
  std::vector<std::string> complaints;
  const auto newest = Checkpoints(run).newest(complaints);
  CHECK(newest.has_value());
  CHECK(complaints.empty());
  for (const auto& entry : fs::directory_iterator(run + "/checkpoint")) CHECK(entry.path().extension() != ".tmp");
  fs::remove(ballast);
  CHECK(run_tapedeck({"train", "--resume", run, "--steps", "60"}).code == exit_done);
  const Outcome straight = run_tapedeck(plain + Words{"--steps", "60", "--out", folder / "straight"});
  CHECK(read_file(run + "/model.safetensors") == read_file(folder / "straight/model.safetensors"));
  umount(disk.c_str());
}
