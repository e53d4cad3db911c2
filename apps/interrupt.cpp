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
constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int count = 3;
struct sigaction before[count], before_pipe;
std::string_view message;

// The handler runs on a stack of its own. oneDNN's gemm moves the stack pointer into a work buffer on the heap, and
// what a signal put down there would overwrite what lies beside it.
alignas(16) char handler_stack[64 * 1024];

// Only what POSIX allows in a handler: no allocation, no locks, no streams.
void on_signal(int) {
  if (asked_to_stop.exchange(true)) _exit(130);
  const int before_errno = errno;  // of whoever was interrupted
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message.data(), message.size());
  errno = before_errno;
}

}  // namespace

Interruption::Interruption(std::string_view said) {
  asked_to_stop = false;
  message = said;
  if (!isatty(STDERR_FILENO)) message.remove_prefix(1);  // a terminal's live line is to be left first
  stack_t stack{};
  stack.ss_sp = handler_stack;
  stack.ss_size = sizeof handler_stack;
  sigaltstack(&stack, nullptr);  // of this thread; engine/parallel.cpp keeps signals away from the others
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART | SA_ONSTACK;  // reads and writes in progress go on
  sigfillset(&action.sa_mask);
  for (int i = 0; i < count; ++i) sigaction(signals[i], &action, &before[i]);
  action.sa_handler = SIG_IGN;  // a reader of our messages that has gone is no reason to lose the run
  sigaction(SIGPIPE, &action, &before_pipe);
}

Interruption::~Interruption() {
  for (int i = 0; i < count; ++i) sigaction(signals[i], &before[i], nullptr);
  sigaction(SIGPIPE, &before_pipe, nullptr);
}

bool Interruption::asked() { return asked_to_stop; }

}  // namespace tapedeck
