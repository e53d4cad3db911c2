#include "apps/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <string_view>

namespace tapedeck {
namespace {

std::atomic<bool> asked_to_stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may touch it only then");
struct sigaction before[2];
constexpr int signals[] = {SIGINT, SIGTERM};
std::string_view message;

// Only what POSIX allows in a handler: no allocation, no locks, no streams.
void on_signal(int) {
  if (asked_to_stop.exchange(true)) _exit(130);
  const int before_errno = errno;  // of whoever was interrupted
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message.data(), message.size());
  errno = before_errno;
}

}  // namespace

Interruption::Interruption() {
  asked_to_stop = false;
  message = "\nstopping: this batch is finished and the run saved; once more leaves at once\n";
  if (!isatty(STDERR_FILENO)) message.remove_prefix(1);  // a terminal's live line is to be left first
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // reads and writes in progress go on
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < 2; ++i) sigaction(signals[i], &action, &before[i]);
}

Interruption::~Interruption() {
  for (int i = 0; i < 2; ++i) sigaction(signals[i], &before[i], nullptr);
}

bool Interruption::asked() { return asked_to_stop; }

}  // namespace tapedeck
