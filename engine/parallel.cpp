#include "engine/parallel.h"

#include <atomic>
#include <csignal>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace tapedeck {
namespace {

// Looks before sleeping: some 20 to 100 µs, as long as the gaps between the loops of a step.
constexpr int spins = 2000;

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until value differs from old: spins first, then sleeps.
template <class T>
void wait_for_change(const std::atomic<T>& value, T old) {
  for (int i = 0; i < spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    relax();
  }
  value.wait(old, std::memory_order_acquire);
}

thread_local bool inside_part = false;  // this thread runs a part: a loop within it stays on it

class Team {
 public:
  ~Team() {
    stop_ = true;
    ticket_.fetch_add(uint64_t{1} << 32);
    ticket_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  std::mutex& owner() { return owner_; }

  void run(int64_t parts, void (*part)(const void*, int64_t), const void* work) {  // the caller holds owner()
    hire(parts - 1);
    part_ = part;
    work_ = work;
    finished_ = 0;
    failure_ = nullptr;
    const uint64_t generation = (ticket_.load() >> 32) + 1;
    ticket_.store(generation << 32 | static_cast<uint64_t>(parts) << 16, std::memory_order_release);
    ticket_.notify_all();
    inside_part = true;
    while (claim_and_run()) {}
    inside_part = false;
    for (int64_t done; (done = finished_.load(std::memory_order_acquire)) < parts;) wait_for_change(finished_, done);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  // Signals go to the main thread: oneDNN's gemm moves the stack pointer into a buffer on the heap, where a handler
  // would overwrite what lies beside it, and only the main thread's handler has a stack of its own.
  void hire(int64_t count) {
    if (std::ssize(workers_) >= count) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // a thread begins with the mask of who makes it
    try {
      while (std::ssize(workers_) < count) workers_.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
      // The system gives no more threads; those that are there claim the other parts.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  // The ticket: generation (32 bits), parts (16), next part (16). Who moves `next` on by compare-and-swap owns that
  // part; the job cannot end before it has finished, so what part_ and work_ say holds until then. A late comer's swap
  // fails.
  bool claim_and_run() {
    uint64_t ticket = ticket_.load(std::memory_order_acquire);
    for (;;) {
      const uint64_t next = ticket & 0xffff, parts = ticket >> 16 & 0xffff;
      if (next >= parts) return false;
      if (ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) {
        run_part(static_cast<int64_t>(next), static_cast<int64_t>(parts));
        return true;
      }
    }
  }

  void run_part(int64_t index, int64_t parts) {
    try {
      part_(work_, index);
    } catch (...) {
      const std::lock_guard lock(failure_lock_);
      if (!failure_) failure_ = std::current_exception();
    }
    if (finished_.fetch_add(1, std::memory_order_acq_rel) + 1 == parts) finished_.notify_one();
  }

  void serve() {
    inside_part = true;
    for (;;) {
      const uint64_t ticket = ticket_.load(std::memory_order_acquire);
      if (stop_) return;  // looked at after the ticket, which ~Team moves on last: the wait below cannot miss it
      if (!claim_and_run()) wait_for_change(ticket_, ticket);
    }
  }

  std::mutex owner_, failure_lock_;
  std::vector<std::thread> workers_;
  std::atomic<uint64_t> ticket_{0};
  std::atomic<int64_t> finished_{0};
  std::atomic<bool> stop_{false};
  void (*part_)(const void*, int64_t) = nullptr;
  const void* work_ = nullptr;
  std::exception_ptr failure_;
};

Team& team() {
  static Team team;
  return team;
}

}  // namespace

void detail::run_parts(int64_t parts, void (*part)(const void* work, int64_t index), const void* work) {
  if (!inside_part) {
    const std::unique_lock lock(team().owner(), std::try_to_lock);
    if (lock.owns_lock()) return team().run(parts, part, work);
  }
  for (int64_t i = 0; i < parts; ++i) part(work, i);
}

}  // namespace tapedeck
