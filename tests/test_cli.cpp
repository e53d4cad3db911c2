// The command line from argv to exit code, with commands of the test's own.
#include "engine/check.h"
#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <new>
#include <sstream>

#include "apps/cli.h"
#include "apps/machine.h"
#include "apps/options.h"

using namespace tapedeck;

namespace {

int runs = 0;  // of any command
Config seen;
int note(const Config& config) {
  ++runs, seen = config;
  std::cout << "result\n";
  return exit_done;
}
int misses(const Config&) { return exit_target_not_reached; }

template <class E>
int fails(const Config&) {
  throw E("it broke");
}
template <>
int fails<std::bad_alloc>(const Config&) {
  throw std::bad_alloc();
}

struct Outcome {
  int code;
  std::string out, err;
};

// Runs the line "train --lr 0.1" with one command's work replaced.
Outcome run(const std::vector<std::string>& words, int (*work)(const Config&) = note) {
  const Command commands[] = {{"train", "trains", "tapedeck train --data digits", work},
                              {"evaluate", "scores", "tapedeck evaluate RUN", work},
                              {"data info", "describes data", "tapedeck data info digits", work},
                              {"data list", "lists data", "tapedeck data list", work}};
  std::vector<const char*> argv = {"tapedeck"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::ostringstream out, err;
  std::streambuf* const cout_before = std::cout.rdbuf(out.rdbuf());
  std::streambuf* const cerr_before = std::cerr.rdbuf(err.rdbuf());
  const int code = run_command_line(static_cast<int>(argv.size()), argv.data(), commands);
  std::cout.rdbuf(cout_before), std::cerr.rdbuf(cerr_before);
  return {code, out.str(), err.str()};
}

bool refused(const std::vector<std::string>& words, std::initializer_list<std::string_view> parts) {
  const int before = runs;
  const Outcome outcome = run(words);
  bool good = outcome.code == exit_usage && runs == before && outcome.out.empty() &&
              outcome.err.starts_with("tapedeck") && outcome.err.find('\n') == outcome.err.size() - 1;  // one line
  for (std::string_view part : parts) good = good && outcome.err.find(part) != std::string::npos;
  if (!good) MESSAGE("code " << outcome.code << ", stderr: " << outcome.err);
  return good;
}

}  // namespace

TEST_CASE("options reach the command, results go to stdout and nothing to stderr") {
  const Outcome outcome = run({"train", "--lr", "0.25", "--hidden=64,32", "--json", "--data", "blobs"});
  CHECK_EQ(outcome.code, exit_done);
  CHECK_EQ(outcome.out, "result\n");
  CHECK_EQ(outcome.err, "");
  CHECK_EQ(seen.command, "train");
  CHECK_EQ(seen.lr, 0.25);
  CHECK(seen.hidden == std::vector<int64_t>{64, 32});
  CHECK(seen.json);
  CHECK(seen.origin("json") == Origin::flag);
  CHECK_FALSE(seen.quiet);
  CHECK(seen.origin("quiet") == Origin::fallback);
}

TEST_CASE("positional arguments and commands within commands") {
  CHECK_EQ(run({"evaluate", "runs/a", "--split", "train"}).code, exit_done);
  CHECK_EQ(seen.run, "runs/a");
  CHECK_EQ(seen.split, "train");  // a value that is also the name of a command
  CHECK_EQ(run({"train", "--note", "evaluate"}).code, exit_done);
  CHECK_EQ(seen.note, "evaluate");
  CHECK_EQ(run({"evaluate", "train"}).code, exit_done);
  CHECK_EQ(seen.run, "train");
  CHECK_EQ(run({"data", "info", "spirals", "--order", "3"}).code, exit_done);
  CHECK_EQ(seen.command, "data info");
  CHECK_EQ(seen.data, "spirals");
  CHECK_EQ(seen.order, 3);
  CHECK_EQ(run({"data", "list", "--json"}).code, exit_done);
  CHECK_EQ(seen.command, "data list");
  CHECK(refused({"evaluate"}, {"tapedeck evaluate: ", "run is missing"}));
  CHECK(refused({"evaluate", "a", "b"}, {"unexpected argument \"b\""}));
  CHECK(refused({"data", "info", "iris"}, {"data iris: no such data set", "digits"}));
}

TEST_CASE("a wrong command line stops before any work, in one line that names it") {
  // The fault: a misspelt option is ignored, and hours of training run with defaults.
  CHECK(refused({"train", "--learing-rate", "0.1"}, {"tapedeck train: ", "--learing-rate", "nearest is --lr"}));
  CHECK(refused({"train", "--learing-rate=0.1"}, {"--learing-rate;", "nearest is --lr"}));
  CHECK(refused({"train", "-e", "3"}, {"unknown option -e"}));
  CHECK(refused({"train", "--epochs", "1O"}, {"--epochs", "\"1O\""}));
  CHECK(refused({"train", "--batch", "-4"}, {"--batch", "\"-4\""}));
  CHECK(refused({"train", "--lr", "nan"}, {"--lr", "\"nan\""}));
  CHECK(refused({"train", "--batch", "0x10"}, {"--batch", "\"0x10\""}));
  CHECK(refused({"train", "--lr", "1", "--lr", "1"}, {"--lr", "twice"}));
  CHECK(refused({"train", "--lr=1", "--seed", "3", "--lr", "2"}, {"--lr", "twice"}));
  CHECK(refused({"train", "--json", "--json"}, {"--json", "twice"}));
  CHECK(refused({"train", "--lr"}, {"--lr has no value"}));
  CHECK(refused({"train", "--lr="}, {"--lr has no value"}));
  CHECK(refused({"train", "--lr", "--batch", "4"}, {"--lr has no value"}));
  CHECK(refused({"train", "--hidden", "64", "64"}, {"unexpected argument \"64\""}));
  CHECK(refused({"train", "extra"}, {"unexpected argument \"extra\""}));
  CHECK(refused({"trian"}, {"tapedeck: unknown command \"trian\"", "train"}));
  CHECK(refused({"data", "lst"}, {"unknown command \"data lst\"", "data list"}));
  CHECK(refused({"--lr", "1", "train"}, {"tapedeck", "\"--lr\" stands before the command"}));
  CHECK(refused({"train", "evaluate", "x"}, {"tapedeck train: ", "unexpected argument \"evaluate\""}));
  CHECK(refused({"train", "--config", "/nonexistent"}, {"/nonexistent"}));
}

TEST_CASE("what a command throws becomes one line and its exit code") {
  const auto code = [](int (*work)(const Config&), std::string_view message) {
    const Outcome outcome = run({"train"}, work);
    CHECK_NE(outcome.err.find(message), std::string::npos);
    CHECK(outcome.err.starts_with("tapedeck train: "));
    CHECK_EQ(outcome.err.find('\n'), outcome.err.size() - 1);
    return outcome.code;
  };
  CHECK_EQ(code(fails<Error>, "it broke"), 1);
  CHECK_EQ(code(fails<std::runtime_error>, "it broke"), 1);
  CHECK_EQ(code(fails<UsageError>, "it broke"), 2);
  CHECK_EQ(code(fails<OutOfMemory>, "it broke"), 4);
  CHECK_EQ(code(fails<std::bad_alloc>, "out of memory"), 4);
  CHECK_EQ(code(fails<std::length_error>, "out of memory"), 4);
  CHECK_EQ(code(fails<Diverged>, "it broke"), 5);
  CHECK_EQ(run({"train"}, misses).code, 3);
}

TEST_CASE("help of a command shows each option with its default, and one example") {
  for (const char* flag : {"--help", "-h"}) {
    const int before = runs;
    const Outcome outcome = run({"train", flag});
    CHECK_EQ(outcome.code, exit_done);
    CHECK_EQ(runs, before);
    for (const Option& option : all_options()) {
      CAPTURE(option.name);
      const bool shown = outcome.out.find("  --" + std::string(option.name) + " ") != std::string::npos;
      CHECK_EQ(shown, (option.commands & kTrain) != 0);
    }
    CHECK_NE(outcome.out.find("default 128,128"), std::string::npos);
    CHECK_NE(outcome.out.find("relu|gelu|gelu_erf|silu|tanh|sigmoid"), std::string::npos);
    CHECK_NE(outcome.out.find("example: tapedeck train --data digits"), std::string::npos);
  }
}

// Fault: --help before the command was dropped, and the command ran.
TEST_CASE("help may be asked for before the command too") {
  const int before = runs;
  CHECK_EQ(run({"--help", "train"}).out, run({"train", "--help"}).out);
  CHECK_EQ(run({"data", "-h", "info"}).out, run({"data", "info", "-h"}).out);
  CHECK_EQ(runs, before);
}

TEST_CASE("tapedeck alone gives an overview, --version the build") {
  const Outcome alone = run({});
  CHECK_EQ(alone.code, exit_done);
  for (const char* word : {"train", "evaluate", "data info", "--version"})
    CHECK_NE(alone.out.find(word), std::string::npos);
  CHECK_EQ(run({"--help"}).out, alone.out);
  const std::string group = run({"data"}).out;
  CHECK_NE(group.find("data list"), std::string::npos);
  CHECK_EQ(group.find("evaluate"), std::string::npos);
  const Outcome version = run({"--version"});
  CHECK_EQ(version.code, exit_done);
  CHECK_EQ(version.out, version_text());
  for (const char* word : {"compiler", "flags", "libraries", "commit"})
    CHECK_NE(version.out.find(word), std::string::npos);
}

TEST_CASE("results that cannot be written are a failure") {
  // The fault: output to a full disk is lost, and the exit code says that all is well.
  if (access("/dev/full", W_OK) != 0) {
    MESSAGE("skipped: no /dev/full");
    return;
  }
  int pipe_ends[2];
  REQUIRE_EQ(pipe(pipe_ends), 0);
  std::cout.flush();
  const pid_t child = fork();  // so that the tests keep their own stdout
  if (child == 0) {
    dup2(pipe_ends[1], STDERR_FILENO);
    if (!std::freopen("/dev/full", "w", stdout)) _exit(99);
    const Command commands[] = {{"train", "", "", note}};
    const char* argv[] = {"tapedeck", "train"};
    _exit(run_command_line(2, argv, commands));
  }
  close(pipe_ends[1]);
  std::string text;
  for (char letter; read(pipe_ends[0], &letter, 1) == 1;) text += letter;
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK_EQ(WEXITSTATUS(status), exit_failed);
  CHECK_EQ(text, "tapedeck train: stdout: cannot be written: No space left on device\n");
}

TEST_CASE("machine facts are those of a real machine") {
  const Machine machine = this_machine();
  CHECK_GE(machine.logical_cores, machine.allowed_cores);
  CHECK_GE(machine.allowed_cores, 1);
  CHECK_GT(machine.memory_bytes, 1 << 20);
  CHECK_NE(machine.processor, "");
  const Load load = measure_load(0.02);
  CHECK_GE(load.idle_share, 0);
  CHECK_LE(load.idle_share, 1);
  CHECK_GE(load.runnable, 0);
}
