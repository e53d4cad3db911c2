// The run folder: found unusable at the start or never, strict JSON, nothing half-written.
#include "engine/check.h"
#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "apps/record.h"
#include "apps/summary.h"
#include "tests/mentions.h"

using namespace tapedeck;
namespace fs = std::filesystem;

namespace {

struct TestFolder {  // an empty folder that goes away with the test, and is the working directory meanwhile
  fs::path path = fs::temp_directory_path() / ("tapedeck_record_" + std::to_string(getpid())),
           before = fs::current_path();
  TestFolder() { fs::remove_all(path), fs::create_directories(path), fs::current_path(path); }
  ~TestFolder() { fs::current_path(before), fs::remove_all(path); }
};

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

Config into(const std::string& out, bool force = false) {
  Config config = configure("train", {});
  config.out = out;
  config.force = force;
  return config;
}

std::string refusal(const Config& config) {
  try {
    RunFolder folder(config);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "accepted";
}

const double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("a run folder is made with its parents and holds config and machine at once") {
  const TestFolder here;
  const RunFolder folder(into("deep/er/run"));
  const Json config = Json::parse(text_of("deep/er/run/config.json"));
  CHECK_EQ(config["format_version"], 1);
  CHECK_EQ(config["lr"]["origin"], "default");
  const Json machine = Json::parse(text_of("deep/er/run/machine.json"));
  CHECK_EQ(machine["format_version"], 1);
  for (const char* key : {"processor", "features", "threads", "compiler", "flags", "libraries", "commit", "load"}) {
    CAPTURE(key);
    CHECK(machine.contains(key));
  }
  CHECK_GE(machine["logical_cores"].get<int>(), machine["allowed_cores"].get<int>());
  CHECK_EQ(text_of("deep/er/run/metrics.jsonl"), "");
  CHECK_EQ(std::distance(fs::directory_iterator("deep/er/run"), fs::directory_iterator()), 3);  // no temporary file
  CHECK(run_config("deep/er/run").target == Target{"accuracy", 0.97});
  CHECK_THROWS_AS(run_config("deep"), UsageError);
}

TEST_CASE("without --out runs are numbered") {
  const TestFolder here;
  CHECK_EQ(RunFolder(into("")).path(), "runs/mlp-digits-001");
  CHECK_EQ(RunFolder(into("")).path(), "runs/mlp-digits-002");
}

TEST_CASE("an output folder that cannot be used is refused at the start, with path and cause") {
  // The fault: it was noticed after 36 minutes of training, and the model was lost.
  const TestFolder here;
  std::ofstream("file") << "x";
  CHECK(mentions(refusal(into("file")), {"--out file", "is a file"}));
  CHECK(mentions(refusal(into("file/run")), {"file", "Not a directory"}));
  CHECK(mentions(refusal(into("/dev/full")), {"/dev/full", "is a file"}));
  CHECK(mentions(refusal(into("/proc/tapedeck")), {"/proc/tapedeck", "cannot be made"}));  // root is stopped here too
  CHECK(mentions(refusal(into(std::string(300, 'a'))), {"File name too long"}));
  CHECK_EQ(text_of("file"), "x");
  fs::create_directories("taken/metrics.jsonl.x");
  fs::create_directories("blocked/machine.json.tmp");  // a folder stands where a file is to be written
  CHECK(mentions(refusal(into("blocked")), {"blocked/machine.json", "Is a directory"}));
  CHECK_FALSE(fs::exists("blocked/config.json"));
}

TEST_CASE("a read-only folder is refused") {
  const TestFolder here;
  fs::create_directory("fixed");
  fs::permissions("fixed",
                  fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec);
  struct Unprivileged {  // root may write everywhere, so be nobody for a while
    uid_t before = geteuid();
    Unprivileged() { REQUIRE_EQ(before == 0 ? seteuid(65534) : 0, 0); }
    ~Unprivileged() {
      if (seteuid(before) != 0) std::abort();
    }
  } unprivileged;
  CHECK(mentions(refusal(into("fixed")), {"fixed", "Permission denied"}));
  CHECK(mentions(refusal(into("fixed/run")), {"fixed", "Permission denied"}));
}

TEST_CASE("a folder that holds a run is refused, and --force replaces the run alone") {
  const TestFolder here;
  RunFolder(into("run")).write("summary.json", {{"status", "done"}});
  std::ofstream("run/notes.txt") << "mine";
  CHECK(mentions(refusal(into("run")), {"--out run", "--force"}));
  CHECK(fs::exists("run/summary.json"));
  const RunFolder folder(into("run", true));
  CHECK_FALSE(fs::exists("run/summary.json"));
  CHECK_EQ(text_of("run/notes.txt"), "mine");
}

// Fault: two programs given the same --out at the same time mixed their files into one run.
TEST_CASE("of several that want the same folder at the same time one gets it") {
  const TestFolder here;
  for (int round = 0; round < 20; ++round) {
    const std::string out = "run" + std::to_string(round);
    std::atomic<int> accepted = 0;
    const auto start = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
    std::vector<std::thread> rivals;
    for (int i = 0; i < 4; ++i)
      rivals.emplace_back([&] {
        const Config config = into(out);
        std::this_thread::sleep_until(start);
        accepted += refusal(config) == "accepted";
      });
    for (std::thread& rival : rivals) rival.join();
    CHECK_EQ(accepted.load(), 1);
  }
}

TEST_CASE("--force replaces the runs of a repeat's seeds, and leaves what only looks like one") {
  const TestFolder here;
  { const RunFolder parent(into("run")), seed(into("run/seed-1")), noted(into("run/seed-2")); }
  std::ofstream("run/seed-2/notes.txt") << "mine";
  fs::create_directories("run/seed-data");
  std::ofstream("run/seed-data/summary.json") << "mine";
  fs::create_directories("run/seed-3");
  std::ofstream("run/seed-3/mine.txt") << "mine";
  const RunFolder folder(into("run", true));
  CHECK_FALSE(fs::exists("run/seed-1"));
  CHECK_FALSE(fs::exists("run/seed-2/config.json"));
  for (const char* file : {"run/seed-2/notes.txt", "run/seed-data/summary.json", "run/seed-3/mine.txt"})
    CHECK_EQ(text_of(file), "mine");
}

TEST_CASE("a run abandoned before its first metrics leaves nothing, a later one all it had") {
  const TestFolder here;
  RunFolder(into("early")).abandon();
  CHECK_FALSE(fs::exists("early"));
  RunFolder late(into("late"));
  late.append({{"step", 1}});
  late.abandon();
  CHECK(fs::exists("late/config.json"));
}

TEST_CASE("metrics are strict JSON lines, flushed, with null and a flag for what is not finite") {
  // The fault: one nan in a metric makes the file invalid, and the viewer shows no experiment at all.
  const TestFolder here;
  RunFolder folder(into("run"));
  folder.append({{"step", 1}, {"loss", 0.5}});
  CHECK_EQ(text_of("run/metrics.jsonl"), "{\"step\":1,\"loss\":0.5}\n");  // before the folder is closed
  folder.append({{"step", 2}, {"loss", kNaN}, {"norm", -std::numeric_limits<double>::infinity()}});
  folder.append({{"step", 3}, {"nested", {{"values", {1.0, kNaN}}}}});
  folder.append({{"step", 4}, {"text", "a\"b\\c\n\x01\xff"}});
  std::istringstream lines(text_of("run/metrics.jsonl"));
  std::vector<Json> read;
  for (std::string line; std::getline(lines, line);) read.push_back(Json::parse(line));
  REQUIRE_EQ(read.size(), 4);
  CHECK_FALSE(read[0].contains("finite"));
  CHECK(read[1]["loss"].is_null());
  CHECK(read[1]["norm"].is_null());
  CHECK_EQ(read[1]["finite"], false);
  CHECK_EQ(read[2]["finite"], false);
  CHECK_EQ(read[3]["text"], "a\"b\\c\n\x01\xEF\xBF\xBD");
}

TEST_CASE("a full disk is an error with path and cause, never a file cut short") {
  const TestFolder here;
  if (!fs::exists("/dev/full")) {
    MESSAGE("skipped: no /dev/full");
    return;
  }
  JsonLines lines("/dev/full");
  CHECK_THROWS_WITH_AS(lines.append({{"step", 1}}), "/dev/full: cannot be written: No space left on device", Error);
  CHECK_THROWS_WITH_AS(write_file("/dev/full", "x"), "/dev/full: cannot be written: No space left on device", Error);
  CHECK(fs::is_character_file("/dev/full"));  // written in place, not replaced by a file

  write_file("kept", "old");
  struct rlimit limit;
  getrlimit(RLIMIT_FSIZE, &limit);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit tiny = {1000, limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tiny);
  std::string message;
  try {
    write_file("kept", std::string(100000, 'x'));
  } catch (const Error& e) {
    message = e.what();
  }
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, handler);
  CHECK_EQ(message, "kept: cannot be written: File too large");
  CHECK_EQ(text_of("kept"), "old");
  CHECK_EQ(std::distance(fs::directory_iterator("."), fs::directory_iterator()), 1);  // no temporary file is left
}

TEST_CASE("a file is replaced as a whole, and a link is written through") {
  const TestFolder here;
  write_file("a", "one");
  write_file("a", "two");
  CHECK_EQ(text_of("a"), "two");
  fs::create_symlink("a", "link");
  write_file("link", "three");
  CHECK_EQ(text_of("a"), "three");
  CHECK(fs::is_symlink("link"));
  CHECK_THROWS_WITH_AS(write_file("none/a", "x"), "none/a: cannot be written: No such file or directory", Error);
}

TEST_CASE("summary.json has every field, null where it does not apply") {
  Summary summary;
  fill(summary, configure("train", {{"seed", "5"}}));
  double now = 0;
  TrainingClock clock([&] { return now; });
  {
    const auto training = clock.enter(Phase::train);
    now = 8;
    const auto wait = clock.enter(Phase::data_wait);
    now = 10;
  }
  fill(summary, clock);
  TargetTracker tracker({"accuracy", 0.9});
  fill(summary, tracker);
  CHECK_EQ(to_json(summary)["target"]["reached"], false);
  CHECK(to_json(summary)["target"]["seconds"].is_null());
  tracker.observe(0.95, {3, 96, 1.5, 2.5});
  tracker.observe(0.95, {4, 128, 2, 3});
  fill(summary, tracker);
  summary.final.train_loss = kNaN;
  summary.step_ms = StepTimeSummary{1, 0.5, 2, 10};
  summary.status = "target reached";
  const Json out = Json::parse(json_text(to_json(summary)));
  const auto keys = [](const Json& object) {
    std::string all;
    for (const auto& [key, value] : object.items()) all += (all.empty() ? "" : " ") + key;
    return all;
  };
  CHECK_EQ(
      keys(out),
      "command model parameters data device precision threads seed batch accumulate steps examples epochs final "
      "target time step_ms throughput data_wait_ratio flops_per_example gflops peak_gflops memory loss_scale noise_scale reason status");
  CHECK_EQ(keys(out["final"]), "train_loss validation_loss validation_accuracy test_loss test_accuracy");
  CHECK_EQ(keys(out["target"]), "metric value reached step examples seconds seconds_with_eval");
  CHECK_EQ(keys(out["time"]), "data init warmup train eval checkpoint data_wait data_load total");
  CHECK_EQ(keys(out["step_ms"]), "median p05 p95 n");
  CHECK_EQ(keys(out["throughput"]), "examples_per_s tokens_per_s");
  CHECK_EQ(keys(out["memory"]), "peak_bytes parameters gradients optimizer activations_peak saved_activations workspace");
  CHECK_EQ(keys(out["loss_scale"]), "final skipped growths backoffs");
  CHECK_EQ(out["seed"], 5);
  CHECK_EQ(out["target"], Json({{"metric", "accuracy"},
                                {"value", 0.9},
                                {"reached", true},
                                {"step", 3},
                                {"examples", 96},
                                {"seconds", 1.5},
                                {"seconds_with_eval", 2.5}}));
  CHECK_EQ(out["time"]["train"], 10.0);
  CHECK_EQ(out["time"]["total"], 10.0);
  CHECK_EQ(out["data_wait_ratio"], 0.2);
  CHECK_EQ(out["step_ms"]["n"], 10);
  CHECK(out["final"]["train_loss"].is_null());
  CHECK(out["loss_scale"]["final"].is_null());
}

// Fault: --force had taken the old run away before the new one was refused or failed.
TEST_CASE("a run that --force replaces is there again when the new one fails before it stands") {
  const TestFolder here;
  const auto old_run = [] {
    RunFolder folder(into("run", true));
    folder.append({{"step", 1}});
    folder.write("summary.json", {{"status", "done"}});
    fs::create_directories("run/seed-3");
    std::ofstream("run/seed-3/config.json") << "{}";
    std::ofstream("run/seed-3/notes.txt") << "mine";
  };
  old_run();
  {
    RunFolder failing(into("run", true));
    CHECK_FALSE(fs::exists("run/summary.json"));
    failing.abandon();
  }
  CHECK(fs::exists("run/summary.json"));
  CHECK(fs::exists("run/seed-3/config.json"));
  CHECK(fs::file_size("run/metrics.jsonl") > 0);
  CHECK_FALSE(fs::exists("run/.replaced"));

  { const RunFolder killed(into("run", true)); }  // says nothing any more
  CHECK_FALSE(fs::exists("run/summary.json"));
  RunFolder(into("run", true)).abandon();
  CHECK(fs::exists("run/summary.json"));

  RunFolder standing(into("run", true));
  standing.append({{"step", 1}});
  CHECK_FALSE(fs::exists("run/.replaced"));
  standing.abandon();
  CHECK_FALSE(fs::exists("run/summary.json"));
  CHECK(text_of("run/seed-3/notes.txt") == "mine");
}
