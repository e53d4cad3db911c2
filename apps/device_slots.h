// DeviceSlots: the memory of two batches on a device. While the compute queue works on one, the transfer queue copies
// the next into the other; events keep either from running ahead of the other.
//
//   transfer   wait(done with slot) → copy x, answers → record(copied)
//   compute    wait(copied) → the step
#pragma once
#include <array>
#include <memory>

#include "apps/problem.h"
#include "engine/backend.h"

namespace tapedeck {

class DeviceSlots {
 public:
  static constexpr int64_t count = 2;

  DeviceSlots(const Problem& problem, int64_t capacity);
  ~DeviceSlots();  // waits for the device
  DeviceSlots(const DeviceSlots&) = delete;
  DeviceSlots& operator=(const DeviceSlots&) = delete;

  // Asks for the copy of a buffer's batch into the slot that was not filled last. Work asked of the compute queue up to
  // now may still read that other slot; work asked from now on finds the new batch.
  void fill(const BatchBuffer& from);
  void wait_for_copy() const;  // until then the buffer must stay as it is

  int current() const { return current_; }
  Inputs batch() const;  // in the type that is computed in: may be an op, part of the step

 private:
  struct Slot {
    Inputs inputs;  // f32, or i32 class ids
    std::unique_ptr<Event> copied, done;
  };
  const Problem& problem_;
  Backend& backend_;
  std::array<Slot, count> slots_;
  int current_ = 0;
  int64_t count_ = 0;
};

}  // namespace tapedeck
