#include "apps/child.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
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

std::atomic<pid_t> running{0};  // the program that we wait for
std::atomic<bool> interrupted{false};
static_assert(std::atomic<pid_t>::is_always_lock_free, "a signal handler may touch it only then");
constexpr int signals[] = {SIGINT, SIGTERM};

void pass_on(int) {
  const int before = errno;
  interrupted = true;
  if (const pid_t id = running; id > 0) kill(id, SIGTERM);
  errno = before;
}

// Waits for a process also where what feeds it throws.
struct Process {
  pid_t id = 0;
  ~Process() { code(); }
  void begun() {
    running = id;
    if (interrupted) kill(id, SIGTERM);  // before we knew its id
  }
  int code() {
    int status = 0;
    siginfo_t ended;
    while (id > 0 && waitid(P_PID, static_cast<id_t>(id), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {}
    running = 0;  // from here on the id may be another's
    while (id > 0 && waitpid(id, &status, 0) < 0 && errno == EINTR) {}
    id = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
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
  const int failure = posix_spawnp(&id, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  return failure;
}

}  // namespace

PassSignalsOn::PassSignalsOn() {
  interrupted = false;
  struct sigaction action {};
  action.sa_handler = pass_on;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < 2; ++i) sigaction(signals[i], &action, &before_[i]);
}

PassSignalsOn::~PassSignalsOn() {
  for (int i = 0; i < 2; ++i) sigaction(signals[i], &before_[i], nullptr);
  interrupted = false;
}

std::optional<Finished> run_program(const std::vector<std::string>& words, const Source& input) {
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "{}: cannot be started: {}", words[0],
        std::strerror(errno));
  Process process;  // the last to go: it ends when our end of the socket is closed
  Socket ours{ends[0]}, theirs{ends[1]};
  const int failure = start(process.id, words, theirs.descriptor);
  if (failure == ENOENT) return std::nullopt;
  CHECK(failure == 0, "{}: cannot be started: {}", words[0], std::strerror(failure));
  process.begun();
  theirs.end();

  if (input) send_all(ours.descriptor, input);
  shutdown(ours.descriptor, SHUT_WR);
  Finished finished;
  finished.out = receive_all(ours.descriptor);
  finished.code = process.code();
  if (interrupted) throw Interrupted{};
  return finished;
}

}  // namespace tapedeck
