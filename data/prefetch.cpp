#include "data/prefetch.h"

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

#include "engine/check.h"

namespace tapedeck {
namespace {

// Threads that start within its scope never see Ctrl-C and kill: the main thread handles them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Prefetch::Prefetch(Loader loader, int workers, int64_t slots, Load load)
    : load_(std::move(load)), loader_(std::move(loader)), slots_(static_cast<size_t>(slots)) {
  CHECK(workers >= 1 && slots >= 2, "prefetch: needs a worker and two slots, got {} and {}", workers, slots);
  const SignalsBlocked blocked;
  try {
    for (int i = 0; i < workers; ++i) workers_.emplace_back([this] { work(); });
  } catch (const std::system_error& e) {
    stop();
    throw Error(
        text("no thread for worker {} of {} ({}): use fewer --workers", workers_.size() + 1, workers, e.what()));
  }
}

Prefetch::~Prefetch() { stop(); }

void Prefetch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  free_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

int64_t Prefetch::next() {
  std::unique_lock lock(mutex_);
  released_ = given_;
  free_.notify_one();
  const int64_t index = given_ % std::ssize(slots_);
  Slot& slot = slots_[static_cast<size_t>(index)];
  ready_.wait(lock, [&] { return slot.ready; });
  if (slot.failure) std::rethrow_exception(slot.failure);
  slot.ready = false;
  ++given_;
  return index;
}

void Prefetch::work() {
  using Clock = std::chrono::steady_clock;
  std::unique_lock lock(mutex_);
  for (;;) {
    free_.wait(lock, [&] { return stopping_ || claimed_ - released_ < std::ssize(slots_); });
    if (stopping_) return;
    const int64_t index = claimed_++ % std::ssize(slots_);
    Slot& slot = slots_[static_cast<size_t>(index)];
    const Clock::time_point begin = Clock::now();
    std::exception_ptr failure;
    try {
      const Batch batch = loader_.next();
      slot.rows.assign(batch.rows.begin(), batch.rows.end());
      lock.unlock();
      load_(slot.rows, index);
    } catch (...) {
      failure = std::current_exception();
    }
    if (!lock.owns_lock()) lock.lock();
    load_seconds_ += std::chrono::duration<double>(Clock::now() - begin).count();
    slot.failure = failure;
    slot.ready = true;
    ready_.notify_one();
  }
}

double Prefetch::load_seconds() const {
  const std::lock_guard lock(mutex_);
  return load_seconds_;
}

}  // namespace tapedeck
