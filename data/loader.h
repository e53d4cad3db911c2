// In which order a run sees its examples. The order is a pure function of (seed, epoch), so a run that stops and goes
// on needs no saved state beyond its Position.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace tapedeck {

struct Position {
  int64_t epoch = 0, offset = 0;  // from 0; examples of the epoch that have been given
  bool operator==(const Position&) const = default;
};

// The rows, each once, shuffled by (seed, epoch).
std::vector<int32_t> epoch_order(std::span<const int32_t> rows, uint64_t seed, int64_t epoch);

// All rows once, in the order given: for evaluation, so the batch size may exceed the rows. Points into rows.
std::vector<std::span<const int32_t>> in_order(std::span<const int32_t> rows, int64_t batch_size);

// Batches for training, epoch after epoch without end, from a position on; the offset may be any number of examples, as
// when the batch size has changed. Throws UsageError for a batch size below 1 or above the number of rows, Error for a
// position outside of the epoch.
class Loader {
 public:
  // Of each epoch's order only the first `epoch` rows are given; 0: all.
  Loader(std::span<const int32_t> rows, int64_t batch_size, uint64_t seed, Position from = {}, int64_t epoch = 0);

  // The rows of a batch, valid until the next call. None goes beyond an epoch: 10 rows in batches of 4 come as 4, 4, 2.
  std::span<const int32_t> next();
  // Of the last batch: its epoch, and all of that epoch's rows in their order.
  int64_t epoch() const { return next_.epoch; }
  int64_t epoch_length() const { return length_; }
  const std::vector<int32_t>& order() const { return order_; }

 private:
  std::vector<int32_t> rows_, order_;  // order_ is of next_.epoch, or empty
  int64_t batch_size_, length_;
  uint64_t seed_;
  Position next_;
};

}  // namespace tapedeck
