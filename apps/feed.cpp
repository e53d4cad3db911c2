#include "apps/feed.h"

#include <utility>

#include "apps/meter.h"
#include "engine/trace.h"

namespace tapedeck {

int default_workers(const Problem& problem) { return problem.data().records ? 1 : 0; }

size_t feed_bytes(const Problem& problem, int64_t batch, int64_t workers, int64_t prefetch) {
  if (DeviceData::fits(problem)) return DeviceData::bytes(problem);
  const int64_t batches = problem.device() == Device::cpu ? feed_slots(workers, prefetch) : DeviceSlots::count;
  return static_cast<size_t>(batches * batch * (problem.data().features + problem.answers())) *
         4;  // bytes of any number
}

Feed::Feed(const Problem& problem, int64_t batch, uint64_t seed, Position from, int workers, int64_t prefetch,
           const int64_t* cursor, int64_t epoch)
    : loader_(problem.data().train, batch, seed, from, epoch) {
  if (cursor && DeviceData::fits(problem)) {
    resident_.emplace(problem, cursor, loader_.epoch_length());
    return;
  }
  if (problem.device() != Device::cpu) slots_.emplace(problem, batch);
  const int64_t slots = feed_slots(workers, prefetch);
  for (int64_t slot = 0; slot < slots; ++slot) buffers_.emplace_back(problem, batch);
  if (workers > 0)
    prefetch_.emplace(loader_, workers, slots, [this](std::span<const int32_t> rows, int64_t slot) {
      const TracedBeside traced("load");
      buffers_[slot].load(rows);
    });
}

int64_t Feed::next() {
  const double begin = steady_seconds();
  if (resident_) {
    count_ = std::ssize(loader_.next());
    if (std::exchange(epoch_there_, loader_.epoch()) != loader_.epoch()) resident_->use_order(loader_.order());
    own_seconds_ += steady_seconds() - begin;
    return count_;
  }
  if (slots_) slots_->wait_for_copy();  // the buffer that it reads is about to be loaded again
  if (prefetch_)
    slot_ = prefetch_->next();
  else
    buffers_[slot_].load(loader_.next());
  count_ = buffers_[slot_].count();
  if (slots_) slots_->fill(buffers_[slot_]);
  if (!prefetch_) own_seconds_ += steady_seconds() - begin;
  return count_;
}

Inputs Feed::inputs() const {
  if (resident_) return resident_->batch(count_);
  return slots_ ? slots_->batch() : buffers_[slot_].inputs();
}

int64_t Feed::place() const { return slots_ ? slots_->current() : 0; }

double Feed::load_seconds() const { return own_seconds_ + (prefetch_ ? prefetch_->load_seconds() : 0); }

}  // namespace tapedeck
