// Prefetch: worker threads that load batches ahead, each into a slot of memory that is used again and again, and hand
// them over in the loader's order whoever was faster.
//
// A ring: batch number n goes to slot n mod slots. Workers claim number after number, as long as its slot is free, load
// outside of the lock, and mark it as ready; next() waits for the number whose turn it is. What a worker throws waits
// in its slot and comes out of next() at that batch's turn, so that a run ends with the same step whatever the timing.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "data/loader.h"

namespace tapedeck {

class Prefetch {
 public:
  // Loads these rows of the data set into a slot, 0 to slots - 1. Several threads call it at once, each for another
  // slot.
  using Load = std::function<void(std::span<const int32_t> rows, int64_t slot)>;

  // Starts at once. Needs at least one worker and two slots: one is in use while another fills.
  Prefetch(Loader loader, int workers, int64_t slots, Load load);
  ~Prefetch();  // waits for loads in progress only
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // The slot that holds the next batch; it stays as it is until the next call. Rethrows what loading it threw, then and
  // at every call after.
  int64_t next();

  double load_seconds() const;  // that all workers have spent in Load and in making the order

 private:
  struct Slot {
    std::vector<int32_t> rows;
    bool ready = false;
    std::exception_ptr failure;
  };
  void work();
  void stop();

  const Load load_;
  mutable std::mutex mutex_;  // guards all below; a slot's rows belong to the worker that claimed it
  std::condition_variable free_, ready_;
  Loader loader_;
  std::vector<Slot> slots_;
  int64_t claimed_ = 0, given_ = 0, released_ = 0;  // batches so far
  bool stopping_ = false;
  double load_seconds_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace tapedeck
