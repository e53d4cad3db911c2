// In which order a run sees its examples. The order is a pure function of (seed, epoch), so a run that stops and goes
// on needs no saved state beyond the two counters of Batch.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck {

struct Batch {
  std::span<const int32_t> rows;  // row numbers of the data set; valid until the next batch is asked for
  int64_t epoch = 0;              // from 0
  int64_t index = 0;              // within the epoch, from 0
  bool last_in_epoch = false;     // then it may be short: 10 rows in batches of 4 come as 4, 4, 2
};

// The rows, each once, shuffled by (seed, epoch).
std::vector<int32_t> epoch_order(std::span<const int32_t> rows, uint64_t seed, int64_t epoch);

// All rows once, in the order given: for evaluation, so the batch size may exceed the rows. Points into rows.
std::vector<Batch> in_order(std::span<const int32_t> rows, int64_t batch_size);

// Batches for training, epoch after epoch without end:  for (const Batch& batch : loader) { … break; }
// Throws UsageError for a batch size below 1 or above the number of rows.
class Loader {
 public:
  Loader(std::span<const int32_t> rows, int64_t batch_size, uint64_t seed);

  int64_t batches_per_epoch() const { return (std::ssize(rows_) + batch_size_ - 1) / batch_size_; }
  Batch next();

  struct Never {};
  struct Iterator {
    Loader* loader;
    Batch batch;
    const Batch& operator*() const { return batch; }
    Iterator& operator++() { return batch = loader->next(), *this; }
    bool operator!=(Never) const { return true; }
  };
  Iterator begin() { return {this, next()}; }
  Never end() const { return {}; }

 private:
  std::vector<int32_t> rows_, order_;
  int64_t batch_size_;
  uint64_t seed_;
  int64_t epoch_ = 0, index_ = 0;
};

}  // namespace tapedeck
