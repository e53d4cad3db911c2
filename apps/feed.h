// Feed: the batches that a run trains on, in the order of its seed, on its device. Worker threads may load ahead; the
// numbers are bitwise the same with any number of them.
#pragma once
#include <optional>
#include <vector>

#include "apps/problem.h"
#include "data/loader.h"
#include "data/prefetch.h"

namespace tapedeck {

// None where the features are in memory: gathering a batch takes less than handing it over. One where they are read
// from a file: loading then overlaps with computing. (`tapedeck bench loader` shows both.)
int default_workers(const Problem& problem);

// Batches whose memory a feed holds at once.
inline int64_t feed_slots(int64_t workers, int64_t prefetch) { return workers * prefetch + 1; }

class Feed {
 public:
  // Keeps the reference. With `workers` 0 next() loads; else each worker may be `prefetch` batches ahead. Memory for
  // workers * prefetch + 1 batches is taken here.
  Feed(const Problem& problem, int64_t batch, uint64_t seed, Position from, int workers, int64_t prefetch);

  struct Fed {
    Inputs inputs;
    int64_t count = 0;  // examples
  };
  // Valid until the next call. Throws what loading this batch threw, on whatever thread; that ends the feed.
  const Fed& next();

  double load_seconds() const;  // spent on loading, by this thread or, added up, by all workers

 private:
  std::vector<BatchBuffer> buffers_;
  Loader loader_;  // idle when there are workers: prefetch_ has its own
  Fed fed_;
  double own_seconds_ = 0;
  std::optional<Prefetch> prefetch_;  // last: its threads end before the buffers do
};

}  // namespace tapedeck
