#include "data/prefetch.h"

#include <chrono>
#include <utility>

#include "engine/check.h"

namespace tapedeck {

Prefetch::Prefetch(Loader loader, int workers, int64_t slots, Load load)
    : load_(std::move(load)), loader_(std::move(loader)), slots_(static_cast<size_t>(slots)) {
  CHECK(workers >= 1 && slots >= 2, "prefetch: needs a worker and two slots, got {} and {}", workers, slots);
  try {
    for (int i = 0; i < workers; ++i) workers_.emplace_back([this] { work(); });
  } catch (const std::exception& e) {  // of the system or for want of memory: those that run must end
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
      const std::span<const int32_t> rows = loader_.next();
      slot.rows.assign(rows.begin(), rows.end());
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
