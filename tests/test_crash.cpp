// What --resume does with a folder that has seen a crash, a full disk, or a divergence.
#include <sys/mount.h>

#include "apps/checkpoint.h"
#include "engine/safetensors.h"
#include "tests/runs.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;
namespace fs = std::filesystem;

namespace {

void flip_byte(const std::string& file, size_t at) {
  std::string bytes = read_file(file);
  bytes.at(at) = static_cast<char>(bytes[at] ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
}

}  // namespace

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
      std::vector<std::string> names;  // the damaged one does not count among the last two
      for (const fs::path& one : Checkpoints(run).list()) names.push_back(one.filename());
      CHECK(names == std::vector<std::string>{"step-00000060", "step-00000070"});
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

// Fault: what a crash leaves half done counts as a checkpoint, or makes the metrics unreadable.
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
  std::ofstream(run + "/checkpoint/step-00000999") << "a file";  // and names that only look like checkpoints
  fs::create_directories(run + "/checkpoint/step-99999999999999999999999");
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

// Fault: the first seed of a repeat fails when it is taken up again, and the whole folder is cleaned away as unused.
TEST_CASE("resume: a repeat whose seed cannot go on keeps its folder") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(run_tapedeck(small + Words{"--steps", "30", "--repeat", "2", "--out", run}).code == exit_done);
  const Outcome again = run_tapedeck({"train", "--resume", run});
  CHECK(again.code == exit_done);
  CHECK(contains(again.out, "saved in"));
  fs::remove(run + "/seed-1/summary.json");
  for (const fs::path& one : Checkpoints(run + "/seed-1").list()) fs::resize_file(one / "weights.safetensors", 10);
  const auto before = contents(run);
  CHECK(run_tapedeck({"train", "--resume", run}).code == exit_failed);
  CHECK(contents(run) == before);
}

// Fault: a crash after the new length was noted and before the old end was taken away: the run says that it has ended.
TEST_CASE("resume: the old end is taken away before a new length is noted") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(run_tapedeck(small + Words{"--steps", "30", "--out", run}).code == exit_done);
  fs::create_directory(run + "/config.json.tmp");  // the note cannot be written: as if the process had ended there
  CHECK(run_tapedeck({"train", "--resume", run, "--steps", "60"}).code == exit_failed);
  CHECK_FALSE(fs::exists(run + "/summary.json"));
  CHECK(read_json(run + "/config.json")["steps"]["value"] == 30);
  fs::remove(run + "/config.json.tmp");
  CHECK(run_tapedeck({"train", "--resume", run, "--steps", "60"}).code == exit_done);
  CHECK(read_json(run + "/summary.json")["steps"] == 60);
}

// Fault: a file that a crash or a hand has damaged ends the program in the words of a library.
TEST_CASE("resume: damaged files of the run folder are named in our words") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(run_tapedeck(small + Words{"--steps", "30", "--out", run}).code == exit_done);
  for (const char* file : {"config.json", "data.json", "summary.json"})
    for (const char* content :
         {"", "{", "[]", "{\"format_version\": 1, \"rows\": \"many\"}", "{\"format_version\": 99}"}) {
      const std::string path = run + "/" + file, pristine = read_file(path);
      std::ofstream(path) << content;
      const Outcome outcome = run_tapedeck({"train", "--resume", run, "--steps", "60"});
      INFO(outcome.err);
      CHECK(outcome.code != exit_done);
      CHECK(contains(outcome.err, file));
      CHECK_FALSE(contains(outcome.err, "json.exception"));
      CHECK(read_file(path) == content);
      std::ofstream(path) << pristine;
    }
}

// Fault: weights that are not finite replace the last good checkpoint.
TEST_CASE("weights that are not finite are never saved as a checkpoint") {
  const TemporaryFolder folder;
  const Outcome outcome =
      run_tapedeck(Words{"train", "--data", "blobs", "--hidden", "8", "--optimizer", "sgd", "--lr", "1e300",
                         "--schedule", "constant", "--checkpoint-every", "1", "--out", folder / "run"});
  INFO(outcome.err);  // the first step has a finite loss and gradient, and weights beyond f32
  CHECK(outcome.code == exit_diverged);
  CHECK(contains(outcome.err, "not finite"));
  CHECK(Checkpoints(folder / "run").list().empty());
}

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
