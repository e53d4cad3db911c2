#include "apps/feed.h"

#include "apps/meter.h"

namespace tapedeck {

int default_workers(const Problem& problem) { return problem.data().records ? 1 : 0; }

Feed::Feed(const Problem& problem, int64_t batch, uint64_t seed, Position from, int workers, int64_t prefetch)
    : loader_(problem.data().train, batch, seed, from) {
  const int64_t slots = feed_slots(workers, prefetch);
  for (int64_t slot = 0; slot < slots; ++slot) buffers_.emplace_back(problem, batch);
  if (workers > 0)
    prefetch_.emplace(loader_, workers, slots,
                      [this](std::span<const int32_t> rows, int64_t slot) { buffers_[slot].load(rows); });
}

const Feed::Fed& Feed::next() {
  fed_ = {};  // gives its memory back before more is taken
  int64_t slot = 0;
  if (prefetch_) slot = prefetch_->next();
  const double begin = steady_seconds();
  if (!prefetch_) buffers_[slot].load(loader_.next());
  fed_.inputs = buffers_[slot].inputs();
  fed_.count = fed_.inputs.x.shape[0];
  own_seconds_ += steady_seconds() - begin;
  return fed_;
}

double Feed::load_seconds() const { return own_seconds_ + (prefetch_ ? prefetch_->load_seconds() : 0); }

}  // namespace tapedeck
