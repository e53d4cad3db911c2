// Feed: the batches that a run trains on, in the order of its seed, on its device. Worker threads may load ahead; the
// numbers are bitwise the same with any number of them.
#pragma once
#include <optional>
#include <vector>

#include "apps/device_data.h"
#include "apps/device_slots.h"
#include "apps/problem.h"
#include "data/loader.h"
#include "data/prefetch.h"

namespace tapedeck {

// None where the features are in memory: gathering a batch takes less than handing it over. One where they are read
// from a file: loading then overlaps with computing. (`tapedeck bench loader` shows both.)
int default_workers(const Problem& problem);

// Batches whose memory a feed holds at once.
inline int64_t feed_slots(int64_t workers, int64_t prefetch) { return workers * prefetch + 1; }

// Bytes of the device's memory that the feed of a run takes: batches, or the data set where it lives on the device.
size_t feed_bytes(const Problem& problem, int64_t batch, int64_t workers, int64_t prefetch);

class Feed {
 public:
  // Keeps the reference. With `workers` 0 next() loads; else each worker may be `prefetch` batches ahead. Memory for
  // workers * prefetch + 1 batches is taken here.
  // Of each epoch's order only the first `epoch` examples are given; 0: all.
  // With a `cursor` (in the device's memory: examples given so far, which the step moves on) data that fits lives on
  // the device, and nobody loads anything.
  Feed(const Problem& problem, int64_t batch, uint64_t seed, Position from, int workers, int64_t prefetch,
       const int64_t* cursor = nullptr, int64_t epoch = 0);

  // Makes the next batch ready and returns its number of examples. Throws what loading it threw, on whatever thread;
  // that ends the feed.
  int64_t next();
  // The batch, until next() is called again. On a device this is work of the compute queue and may be captured, anew
  // for each place.
  Inputs inputs() const;
  int64_t place() const;  // which of several memories the batch lies in

  double load_seconds() const;  // spent on loading, by this thread or, added up, by all workers

 private:
  std::vector<BatchBuffer> buffers_;
  Loader loader_;  // idle when there are workers: prefetch_ has its own
  int64_t slot_ = 0, count_ = 0;
  int64_t epoch_there_ = -1;  // whose order the device has
  double own_seconds_ = 0;
  std::optional<DeviceData> resident_;
  std::optional<DeviceSlots> slots_;
  std::optional<Prefetch> prefetch_;  // last: its threads end before the buffers do
};

}  // namespace tapedeck
