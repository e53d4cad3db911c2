// The program as a process that is signalled and killed.
#include <atomic>

#include "apps/checkpoint.h"
#include "apps/interrupt.h"
#include "engine/parallel.h"
#include "engine/random.h"
#include "tests/process.h"
#include "tests/runs.h"
#include "tests/this_build.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;
namespace fs = std::filesystem;

namespace {

bool has_checkpoint(const std::string& run) { return !Checkpoints(run).list().empty(); }
bool has_metrics(const std::string& run) {
  return fs::exists(run + "/metrics.jsonl") && fs::file_size(run + "/metrics.jsonl") > 0;
}

// Longer than any test waits.
const Words endless = {"train",     "--data",    "blobs", "--hidden",   "32",      "--steps",
                       "100000000", "--dropout", "0.1",   "--schedule", "constant"};

}  // namespace

// Fault: Ctrl-C loses the run, or hangs with loader threads, or truncates the checkpoint.
TEST_CASE("interrupt: once, the run is saved, says how to go on, and leaves with 130") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    for (const char* workers : {"0", "4"}) {
      const TemporaryFolder folder;
      const std::string run = folder / "run";
      Process process(endless + Words{"--out", run, "--workers", workers}, folder.path());
      REQUIRE(Process::within(30, [&] { return has_metrics(run); }));
      process.signal(signal);
      CHECK(process.wait(10) == exit_interrupted);
      INFO(process.err());
      CHECK(contains(process.err(), "tapedeck train --resume " + run));
      CHECK(has_checkpoint(run));
      CHECK(read_json(run + "/summary.json")["status"] == "interrupted");
      const int64_t stopped_at = read_json(run + "/summary.json")["steps"];

      Process resumed({"train", "--resume", run, "--steps", std::to_string(stopped_at + 50)}, folder.path());
      REQUIRE(resumed.wait() == exit_done);
      CHECK(contains(resumed.err(), "going on from step-"));
      CHECK(read_json(run + "/summary.json")["steps"] == stopped_at + 50);
      Process straight({"train", "--config", run + "/config.json", "--out", folder / "straight"}, folder.path());
      REQUIRE(straight.wait() == exit_done);
      CHECK(read_file(run + "/model.safetensors") == read_file(folder / "straight/model.safetensors"));
    }
}

// Fault: a handler runs on the stack of whatever it interrupts; in the midst of a matrix product that is a buffer on
// the heap, and the signal overwrites what lies beside it.
TEST_CASE("interrupt: a signal in the middle of a matrix product harms nothing") {
  for (int round = 0; round < 25; ++round) {
    const TemporaryFolder folder;
    const std::string run = folder / "run";
    Process process({"train", "--batch", "769", "--hidden", "64", "--steps", "1000000", "--quiet", "--out", run},
                    folder.path());
    REQUIRE(Process::within(30, [&] { return fs::exists(run + "/metrics.jsonl"); }));
    std::this_thread::sleep_for(std::chrono::microseconds(random_bits(2, 0, site_of("signal"), round).word[0] % 90000));
    process.signal(SIGINT);
    INFO(process.err());
    CHECK(process.wait(20) == exit_interrupted);
  }
}

// Fault B55: an interrupted profile leaves half of a trace, which nothing can read.
TEST_CASE("interrupt: a profile within its window leaves a trace and a document that parse") {
  const TemporaryFolder folder;
  const std::string run = folder / "run", trace = folder / "trace.json";
  Process process({"profile", "--data",    "blobs",    "--hidden",  "256,256",  "--batch",        "256",
                   "--steps", "2000000",   "--epochs", "100000000", "--window", "active=1000000", "--log-every",
                   "1",       "--threads", "1",        "--trace",   trace,      "--out",          run,
                   "--json"},
                  folder.path());
  REQUIRE(Process::within(
      30, [&] { return has_metrics(run) && contains(read_file(run + "/metrics.jsonl"), "\"profiled\""); }));
  process.signal(SIGINT);
  CHECK(process.wait(20) == exit_interrupted);
  INFO(process.err());
  const Json document = Json::parse(process.out());
  CHECK(document["profiled_steps"].size() > 0);
  CHECK(document["overhead"].is_null());
  size_t steps = 0;
  const Json written = Json::parse(read_file(trace));
  for (const Json& event : written["traceEvents"]) steps += event["name"] == "step";
  CHECK(steps == document["profiled_steps"].size());
}

// Fault: it said that the run is saved, which compare does with none.
TEST_CASE("interrupt: compare says that it keeps nothing, and prints no half of a document") {
  const TemporaryFolder folder;
  Process process({"compare", "--a", "--lr 0.1", "--b", "--lr 0.2", "--data", "blobs", "--hidden", "8", "--epochs", "1",
                   "--seeds", "100000", "--threads", "1", "--device", "cpu", "--json"},
                  folder.path());
  REQUIRE(Process::within(30, [&] { return contains(process.err(), "seed 1 (1 of"); }));
  process.signal(SIGINT);
  CHECK(process.wait(20) == exit_interrupted);
  INFO(process.err());
  CHECK(process.out().empty());
  CHECK(contains(process.err(), "stopping: this batch is finished, and nothing is kept"));
  CHECK_FALSE(contains(process.err(), "saved"));
}

TEST_CASE("interrupt: handlers have a stack of their own, and threads that compute take no signals") {
  const Threads four(4);
  const Interruption signals;
  struct sigaction now;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    REQUIRE(sigaction(signal, nullptr, &now) == 0);
    CHECK((now.sa_flags & SA_ONSTACK) != 0);
  }
  stack_t stack;
  REQUIRE(sigaltstack(nullptr, &stack) == 0);
  CHECK((stack.ss_flags & SS_DISABLE) == 0);
  CHECK(stack.ss_size >= 32 * 1024);  // AVX-512 state alone takes 3 KiB of it

  const auto caller = std::this_thread::get_id();
  std::atomic<int> others{0}, open_to_signals{0};
  for (int round = 0; round < 1000 && others < 10; ++round)
    parallel_ranges(4, 1, [&](int64_t, int64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // so that the others get a part as well
      if (std::this_thread::get_id() == caller) return;
      sigset_t blocked;
      pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
      ++others;
      if (!sigismember(&blocked, SIGINT) || !sigismember(&blocked, SIGTERM)) ++open_to_signals;
    });
  CHECK(others >= 10);
  CHECK(open_to_signals == 0);
}

// Fault: standard error was closed, its number goes to metrics.jsonl, and the progress is written into that.
TEST_CASE("streams that were closed by whoever started the program are not taken for files") {
  const TemporaryFolder folder;
  const std::string command =
      build_dir() + "/tapedeck train --steps 5 --log-every 1 --out " + (folder / "run") + " <&- >&- 2>&-";
  CHECK(std::system(command.c_str()) == 0);
  CHECK(curve(folder / "run", "train_loss").size() == 5);  // every line is JSON
}

// Fault: the folder is gone, and the run goes on for hours into files that nobody can find.
TEST_CASE("a run folder that is removed ends the run at the next checkpoint") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  Process process(endless + Words{"--out", run, "--checkpoint-every", "50"}, folder.path());
  REQUIRE(Process::within(30, [&] { return has_checkpoint(run); }));
  process.signal(SIGSTOP);
  fs::rename(run, folder / "elsewhere");
  process.signal(SIGCONT);
  CHECK(process.wait(20) == exit_failed);
  // The checkpoint being written, or, where the stop fell behind its renaming, the folder that is then forced to disk.
  CHECK(contains(process.err(), run + "/checkpoint"));
}

// Fault: a second Ctrl-C during the save that the first one began destroys what was saved before.
TEST_CASE("interrupt: twice, the process leaves at once and the checkpoint before stays whole") {
  for (int round = 0; round < 5; ++round) {
    const TemporaryFolder folder;
    const std::string run = folder / "run";
    Process process(endless + Words{"--out", run, "--checkpoint-every", "1"}, folder.path());
    REQUIRE(Process::within(30, [&] { return Checkpoints(run).list().size() == 2; }));
    process.signal(SIGINT);
    process.signal(SIGTERM);  // two of the same kind may arrive as one
    CHECK(process.wait(10) == exit_interrupted);
    std::vector<std::string> complaints;
    CHECK(Checkpoints(run).newest(complaints).has_value());
    CHECK(complaints.empty());
  }
}

// The second one does not wait for a batch, which may take long.
TEST_CASE("interrupt: twice, nothing more is finished or saved") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  Process process(
      {"train", "--data", "blobs", "--batch", "3200", "--accumulate", "1000", "--hidden", "3000,3000", "--out", run},
      folder.path());
  REQUIRE(Process::within(60, [&] { return fs::exists(run + "/metrics.jsonl"); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  process.signal(SIGINT);
  process.signal(SIGTERM);
  CHECK(process.wait(60) == exit_interrupted);
  INFO(process.err());
  CHECK_FALSE(contains(process.err(), "go on with"));
  CHECK_FALSE(fs::exists(run + "/summary.json"));
  CHECK_FALSE(has_checkpoint(run));
}

TEST_CASE("interrupt: a repeat goes on with the seed that was stopped, and ends as if it had not been") {
  const TemporaryFolder folder;
  const Words options = {"train", "--data",   "blobs", "--hidden",     "32",  "--steps",
                         "3000",  "--repeat", "3",     "--eval-every", "1000"};
  Process straight(options + Words{"--out", folder / "straight"}, folder.path());
  REQUIRE(straight.wait() == exit_done);

  const std::string run = folder / "stopped";
  Process process(options + Words{"--out", run}, folder.path());
  REQUIRE(Process::within(30, [&] { return has_metrics(run + "/seed-2"); }));
  process.signal(SIGINT);
  REQUIRE(process.wait(10) == exit_interrupted);
  CHECK(contains(process.err(), "--resume " + run + "\n"));
  const std::string first = read_file(run + "/seed-1/summary.json");

  Process resumed({"train", "--resume", run}, folder.path());
  REQUIRE(resumed.wait() == exit_done);
  CHECK(read_file(run + "/seed-1/summary.json") == first);  // was not run again
  for (const char* seed : {"/seed-1", "/seed-2", "/seed-3"})
    CHECK(read_file(run + seed + "/model.safetensors") == read_file(folder / "straight" + seed + "/model.safetensors"));
  CHECK(read_json(run + "/summary.json")["runs"].size() == 3);
}

// Fault: a save truncates the only good file first, so that a kill in its middle destroys both.
TEST_CASE("kill -9 at 50 random times during saves: the run goes on 50 times of 50, to the same weights") {
  const TemporaryFolder folder;
  const Words options = {"train",   "--data", "blobs",     "--hidden", "32,32",
                         "--steps", "4000",   "--dropout", "0.1",      "--quiet"};
  Process straight(options + Words{"--out", folder / "straight"}, folder.path());
  REQUIRE(straight.wait() == exit_done);

  const std::string run = folder / "killed";
  int resumed = 0, in_the_middle = 0;
  std::string newest_before;
  for (int kills = 0; kills < 50; ++kills) {
    Process process(kills == 0 ? options + Words{"--out", run, "--checkpoint-every", "1"}
                               : Words{"train", "--resume", run, "--quiet"},
                    folder.path());
    const auto newest = [&] { return has_checkpoint(run) ? Checkpoints(run).list().back().string() : ""; };
    INFO(process.err());
    REQUIRE(Process::within(60, [&] { return newest() != newest_before; }));  // it went on: one more was saved
    if (kills > 0) ++resumed;
    std::this_thread::sleep_for(std::chrono::microseconds(random_bits(1, 0, site_of("kill"), kills).word[0] % 4000));
    process.signal(SIGKILL);
    REQUIRE(process.wait() == 128 + SIGKILL);
    newest_before = newest();
    for (const auto& entry : fs::directory_iterator(run + "/checkpoint"))
      if (entry.path().extension() == ".tmp") ++in_the_middle;
  }
  // Else the kills did not fall into saves. Sanitizers slow steps more than saves.
  CHECK(in_the_middle > (tapedeck::test::sanitizers().empty() ? 10 : 0));
  Process last({"train", "--resume", run, "--checkpoint-every", "1000"}, folder.path());
  REQUIRE(last.wait() == exit_done);
  ++resumed;
  CHECK(resumed == 50);
  CHECK(read_file(run + "/model.safetensors") == read_file(folder / "straight/model.safetensors"));
  for (const char* key : {"train_loss", "validation_loss", "gradient_norm"})
    CHECK(curve(run, key) == curve(folder / "straight", key));
  for (const auto& entry : fs::directory_iterator(run + "/checkpoint")) CHECK(entry.path().extension() != ".tmp");
}
