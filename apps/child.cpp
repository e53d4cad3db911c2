#include "apps/child.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "engine/check.h"

namespace tapedeck {
namespace {

// One socket is the program's standard input and output: unlike to a pipe, sending to a program that has gone is an
// error code and no signal.
struct Socket {
  int descriptor = -1;
  ~Socket() { end(); }
  void end() {
    if (descriptor >= 0) close(descriptor);
    descriptor = -1;
  }
};

void send_all(int descriptor, const Source& input) {
  std::array<uint8_t, 1 << 16> bytes;
  while (const size_t n = input(bytes.data(), bytes.size()))
    for (size_t done = 0; done < n;) {
      const ssize_t sent = send(descriptor, bytes.data() + done, n - done, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return;  // it ended early; its exit code says why
      done += static_cast<size_t>(sent);
    }
}

std::string receive_all(int descriptor) {
  std::string out;
  std::array<char, 1 << 12> bytes;
  for (;;) {
    const ssize_t got = read(descriptor, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return out;
    out.append(bytes.data(), static_cast<size_t>(got));
  }
}

// Waits for a process also where what feeds it throws.
struct Process {
  pid_t id = 0;
  ~Process() { code(); }
  int code() {
    int status = 0;
    while (id > 0 && waitpid(id, &status, 0) < 0 && errno == EINTR) {}
    id = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
};

// While we wait, Ctrl-C is the program's to take, as with system(3): it ends, and we tidy up after it.
struct LeaveInterruptsToIt {
  LeaveInterruptsToIt() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGINT, &ignore, &before);
  }
  ~LeaveInterruptsToIt() { sigaction(SIGINT, &before, nullptr); }
  struct sigaction before;
};

// posix_spawnp with this socket as standard input and output. Returns errno.
int start(pid_t& id, const std::vector<std::string>& words, int socket) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, socket, STDOUT_FILENO);
  posix_spawnattr_t signals;
  posix_spawnattr_init(&signals);
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  posix_spawnattr_setsigdefault(&signals, &interrupt);
  posix_spawnattr_setflags(&signals, POSIX_SPAWN_SETSIGDEF);
  const int failure = posix_spawnp(&id, argv[0], &files, &signals, argv.data(), environ);
  posix_spawnattr_destroy(&signals);
  posix_spawn_file_actions_destroy(&files);
  return failure;
}

}  // namespace

std::optional<Finished> run_program(const std::vector<std::string>& words, const Source& input) {
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "{}: cannot be started: {}", words[0],
        std::strerror(errno));
  const LeaveInterruptsToIt until_it_ends;
  Process process;  // the last to go: it ends when our end of the socket is closed
  Socket ours{ends[0]}, theirs{ends[1]};
  const int failure = start(process.id, words, theirs.descriptor);
  if (failure == ENOENT) return std::nullopt;
  CHECK(failure == 0, "{}: cannot be started: {}", words[0], std::strerror(failure));
  theirs.end();

  if (input) send_all(ours.descriptor, input);
  shutdown(ours.descriptor, SHUT_WR);
  Finished finished;
  finished.out = receive_all(ours.descriptor);
  finished.code = process.code();
  return finished;
}

}  // namespace tapedeck
