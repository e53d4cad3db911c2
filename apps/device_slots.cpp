#include "apps/device_slots.h"

namespace tapedeck {

DeviceSlots::DeviceSlots(const Problem& problem, int64_t capacity)
    : problem_(problem), backend_(backend(problem.device())) {
  for (Slot& slot : slots_) {
    slot = {problem.empty_stored(capacity, problem.device()), backend_.event(), backend_.event()};
    backend_.record(*slot.done, Queue::compute);  // fresh memory is the compute queue's
  }
}

DeviceSlots::~DeviceSlots() { backend_.sync_quietly(); }

void DeviceSlots::fill(const BatchBuffer& from) {
  backend_.record(*slots_[current_].done, Queue::compute);
  current_ = 1 - current_;
  count_ = from.count();
  const Slot& slot = slots_[current_];
  const Inputs part = first_rows(slot.inputs, count_);
  backend_.wait(Queue::transfer, *slot.done);
  backend_.copy_later(Queue::transfer, part.x.data.begin(), from.x(), part.x.bytes());
  backend_.copy_later(Queue::transfer, part.answer.data.begin(), from.answer(), part.answer.bytes());
  backend_.record(*slot.copied, Queue::transfer);
  backend_.wait(Queue::compute, *slot.copied);
}

void DeviceSlots::wait_for_copy() const { backend_.wait(*slots_[current_].copied); }

Inputs DeviceSlots::batch() const { return problem_.converted(first_rows(slots_[current_].inputs, count_)); }

}  // namespace tapedeck
