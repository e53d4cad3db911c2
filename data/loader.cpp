#include "data/loader.h"

#include <algorithm>
#include <utility>

#include "data/byte_count.h"
#include "engine/check.h"
#include "engine/random.h"

namespace tapedeck {
namespace {

Batch slice(std::span<const int32_t> order, int64_t batch_size, int64_t epoch, int64_t index) {
  const int64_t begin = index * batch_size, size = std::min<int64_t>(batch_size, std::ssize(order) - begin);
  return {order.subspan(begin, size), epoch, index, begin + size == std::ssize(order)};
}

}  // namespace

// Fisher and Yates from the end: a random one of the first n goes to place n - 1 [Knuth, TAOCP 2, algorithm P].
std::vector<int32_t> epoch_order(std::span<const int32_t> rows, uint64_t seed, int64_t epoch) {
  constexpr uint32_t site = site_of("data.order");
  std::vector<int32_t> order(rows.begin(), rows.end());
  for (uint64_t n = order.size(); n > 1; --n) {
    const Random4 bits = random_bits(seed, epoch, site, n);
    const uint64_t chosen = bounded(uint64_t(bits.word[0]) << 32 | bits.word[1], n);
    std::swap(order[chosen], order[n - 1]);
  }
  return order;
}

std::vector<Batch> in_order(std::span<const int32_t> rows, int64_t batch_size) {
  if (batch_size < 1) throw UsageError(text("batch {}: must be at least 1", batch_size));
  batch_size = std::min<int64_t>(batch_size, std::ssize(rows));  // so that index * batch_size cannot overflow
  std::vector<Batch> batches;
  for (int64_t index = 0; index * batch_size < std::ssize(rows); ++index)
    batches.push_back(slice(rows, batch_size, 0, index));
  return batches;
}

Loader::Loader(std::span<const int32_t> rows, int64_t batch_size, uint64_t seed)
    : rows_(rows.begin(), rows.end()), batch_size_(batch_size), seed_(seed) {
  if (batch_size < 1) throw UsageError(text("batch {}: must be at least 1", batch_size));
  if (batch_size > std::ssize(rows))
    throw UsageError(text("batch {}: larger than the training split of {} rows; use at most {}", batch_size,
                          grouped(rows.size()), rows.size()));
}

Batch Loader::next() {
  if (index_ == 0) order_ = epoch_order(rows_, seed_, epoch_);
  const Batch batch = slice(order_, batch_size_, epoch_, index_++);
  if (batch.last_in_epoch) ++epoch_, index_ = 0;
  return batch;
}

}  // namespace tapedeck
