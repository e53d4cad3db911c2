// tapedeck data fetch, from mirrors that are folders: right files, wrong ones, none.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <filesystem>
#include <set>

#include "apps/child.h"
#include "engine/check.h"
#include "tests/environment.h"
#include "tests/idx_bytes.h"
#include "tests/process.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#include "tests/mentions.h"

using namespace tapedeck;
using namespace tapedeck::test;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> packed_names = {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
                                               "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"};

bool have_programs() {
  for (const char* program : {"curl", "sha256sum"})
    if (!run_program({program, "--version"})) {
      std::cout << "skipped: no program " << program << "\n";
      return false;
    }
  return true;
}

std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

// A mirror that takes what it is asked and never answers.
class SilentMirror {
 public:
  SilentMirror() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET, at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    REQUIRE(bind(listener_, reinterpret_cast<sockaddr*>(&at), size) == 0);
    REQUIRE(listen(listener_, 1) == 0);
    REQUIRE(getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    port_ = ntohs(at.sin_port);
  }
  ~SilentMirror() { close(listener_), close(asked_); }
  std::string url() const { return text("http://127.0.0.1:{}/", port_); }

  bool is_asked() {
    pollfd ready{listener_, POLLIN, 0};
    if (poll(&ready, 1, 30000) == 1) asked_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    return asked_ >= 0;
  }
  // Whether who asked is gone: nothing more comes but the end.
  bool is_left() {
    char bytes[1 << 12];
    for (pollfd ready{asked_, POLLIN, 0}; poll(&ready, 1, 10000) == 1;)
      if (recv(asked_, bytes, sizeof bytes, 0) <= 0) return true;
    return false;
  }

 private:
  int listener_, asked_ = -1;
  int port_ = 0;
};

Outcome fetch(const std::string& to, const std::string& mirror) {
  return tapedeck::test::tapedeck({"data", "fetch", "mnist", "--data-dir", to, "--mirror", mirror, "--quiet"});
}

}  // namespace

TEST_CASE("a program is run without a shell, fed, and heard") {
  CHECK(run_program({"printf", "%s|", "$HOME *", "a b"})->out == "$HOME *|a b|");
  CHECK(run_program({"false"})->code == 1);
  CHECK(run_program({"sh", "-c", "kill -9 $$"})->code == 128 + 9);
  CHECK_FALSE(run_program({"no-program-has-this-name"}));
  size_t left = 1000000;
  const auto input = [&](uint8_t* out, size_t n) {
    n = std::min(n, left), left -= n;
    std::fill_n(out, n, uint8_t('x'));
    return n;
  };
  CHECK(run_program({"wc", "-c"}, input)->out == "1000000\n");
  left = 10000000;
  CHECK(run_program({"true"}, input)->code == 0);  // it does not wait for all of that
  const auto broken = [](uint8_t*, size_t) -> size_t { throw Error("cannot be read"); };
  CHECK_THROWS_AS(run_program({"cat"}, broken), Error);
}

TEST_CASE("data fetch takes the right files, and keeps those that are there") {
  if (!have_programs()) return;
  for (const std::string& name : packed_names)
    if (!test_data("mnist/" + name)) return;
  const std::string mirror = "file://" + fs::canonical(*test_data("mnist/" + packed_names[0])).parent_path().string();
  const TemporaryFolder folder;
  const Outcome first = fetch(folder / "mnist", mirror);
  INFO(first.out << first.err);
  CHECK(first.code == exit_done);
  CHECK(first.err == "");
  CHECK(files_in(folder / "mnist") == std::set(packed_names.begin(), packed_names.end()));
  CHECK(tapedeck::test::tapedeck({"data", "info", "mnist", "--data-dir", folder / "mnist"}).code == exit_done);

  fs::remove(folder / "mnist/t10k-labels-idx1-ubyte.gz");
  const Outcome second = fetch(folder / "mnist", mirror + "/");
  CHECK(second.code == exit_done);
  CHECK(mentions(second.out, {"train-images-idx3-ubyte.gz  already there", "t10k-labels-idx1-ubyte.gz   4,", "bytes"}));
  const Outcome third = fetch(folder / "mnist", "file:///nowhere");  // nothing to fetch, no mirror to ask
  CHECK(third.code == exit_done);
  CHECK(mentions(third.out, {"t10k-labels-idx1-ubyte.gz   already there"}));
}

// Fault: a failed download left an empty, short or wrong file, which the reader then met.
TEST_CASE("data fetch leaves nothing behind of a wrong or failed download, and says what to do offline") {
  if (!have_programs()) return;
  const auto whole = test_data("mnist/" + packed_names[0]);
  if (!whole) return;
  const std::string content = read_file(*whole);
  const TemporaryFolder mirror, folder;
  struct Wrong {
    std::string bytes, cause;
  };
  const std::vector<Wrong> cases = {
      {"", "is another file"},
      {"<html>404</html>", "is another file"},
      {content.substr(0, content.size() / 2), "cut short"},
      {content + "x", "follow"},
      {std::string(read_file(*whole)).replace(1000, 1, 1, char(content[1000] ^ 1)), "train-images-idx3-ubyte.gz"},
  };
  const auto check_refused = [&](const Outcome& outcome, std::string_view cause) {
    CHECK(outcome.code == exit_failed);
    CHECK(mentions(outcome.err, {"train-images-idx3-ubyte.gz cannot be fetched", cause, "Without a network, copy",
                                 "t10k-labels-idx1-ubyte.gz", "https://", "--data-dir"}));
    CHECK(files_in(folder.path()).empty());
  };
  for (const Wrong& wrong : cases) {
    INFO(wrong.cause << ", " << wrong.bytes.size() << " bytes");
    mirror.write(packed_names[0], text_bytes(wrong.bytes));
    check_refused(fetch(folder.path(), "file://" + mirror.path()), wrong.cause);
    check_refused(fetch(folder / "new", "file://" + mirror.path()), wrong.cause);  // nor the folder that it made
  }
  fs::remove(mirror / packed_names[0]);
  check_refused(fetch(folder.path(), "file://" + mirror.path()), "curl:");
  check_refused(fetch(folder.path(), "http://127.0.0.1:9/"), "curl:");  // nobody listens there
}

// Fault: Ctrl-C while the hash was computed was taken for a failure of the mirror, and the next one was asked. A kill
// left the half download, and curl went on with it.
TEST_CASE("data fetch that is interrupted or killed tidies up, ends curl and asks nobody else") {
  if (!have_programs()) return;
  for (const int signal : {SIGINT, SIGTERM}) {
    const TemporaryFolder folder;
    SilentMirror mirror;
    Process process({"data", "fetch", "mnist", "--data-dir", folder / "mnist", "--mirror", mirror.url()},
                    folder.path());
    REQUIRE(mirror.is_asked());
    CHECK(files_in(folder / "mnist") == std::set<std::string>{packed_names[0] + ".part"});
    process.signal(signal);  // to it alone, as kill does
    CHECK(process.wait(10) == exit_interrupted);
    CHECK(mirror.is_left());
    CHECK(mentions(process.err(), {"interrupted"}));
    CHECK_FALSE(fs::exists(folder / "mnist"));
  }
  // While the hash is computed: by a program of that name which takes its time.
  const TemporaryFolder folder;
  folder.write("sha256sum", text_bytes("#!/bin/sh\nif [ $# = 0 ]; then : > $TMPDIR/started; exec sleep 60; fi\n"));
  fs::permissions(folder / "sha256sum", fs::perms::owner_all);
  folder.write(packed_names[0], text_bytes("any"));
  const Environment path("PATH", folder.path() + ":" + std::getenv("PATH")), place("TMPDIR", folder.path());
  Process process({"data", "fetch", "mnist", "--data-dir", folder / "mnist", "--mirror", "file://" + folder.path()},
                  folder.path());
  REQUIRE(Process::within(30, [&] { return fs::exists(folder / "started"); }));
  process.signal(SIGINT);
  CHECK(process.wait(10) == exit_interrupted);
  CHECK(mentions(process.err(), {"interrupted"}));
  CHECK_FALSE(contains(process.err(), "failed"));
  CHECK_FALSE(fs::exists(folder / "mnist"));
}

TEST_CASE("data fetch never replaces a file that is not its own") {
  if (!have_programs()) return;
  const TemporaryFolder folder;
  for (const std::string name : {"train-images-idx3-ubyte", "train-images-idx3-ubyte.gz"}) {
    folder.write(name, text_bytes("mine"));
    const Outcome outcome = fetch(folder.path(), "file:///nowhere");
    CHECK(outcome.code == exit_failed);
    CHECK(mentions(outcome.err, {folder / name, "is another file", "move it away"}));
    CHECK(read_file(folder / name) == "mine");
    fs::remove(folder / name);
  }
}

TEST_CASE("data fetch refuses what it cannot do in one sentence") {
  const TemporaryFolder folder;
  const auto outcome = [](const std::vector<std::string>& words) {
    std::vector<std::string> all = {"data", "fetch"};
    all.insert(all.end(), words.begin(), words.end());
    return tapedeck::test::tapedeck(all);
  };
  const Outcome other = outcome({"digits", "--data-dir", folder.path()});
  CHECK(other.code == exit_usage);
  CHECK(mentions(other.err, {"digits", "only mnist"}));
  const Outcome nowhere = outcome({"mnist"});
  CHECK(nowhere.code == exit_usage);
  CHECK(mentions(nowhere.err, {"--data-dir"}));
  const Outcome scheme = outcome({"mnist", "--data-dir", folder.path(), "--mirror", "ftp://x"});
  CHECK(scheme.code == exit_usage);
  CHECK(mentions(scheme.err, {"ftp://x", "https://", "file://"}));
  {
    const Environment empty("PATH", folder.path());
    const Outcome no_curl = outcome({"mnist", "--data-dir", folder / "mnist"});
    CHECK(no_curl.code == exit_failed);
    CHECK(mentions(no_curl.err, {"curl", "not installed", "Without a network, copy"}));
    CHECK(files_in(folder.path()).empty());
  }
  if (!have_programs()) return;
  const Outcome unwritable = fetch("/dev/null/mnist", "file:///nowhere");  // no folder, not even for root
  CHECK(unwritable.code == exit_failed);
  CHECK(mentions(unwritable.err, {"/dev/null/mnist", "cannot be made"}));
}
