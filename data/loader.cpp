#include "data/loader.h"

#include <algorithm>
#include <utility>

#include "data/byte_count.h"
#include "engine/check.h"
#include "engine/random.h"

namespace tapedeck {
namespace {

std::span<const int32_t> cut(std::span<const int32_t> order, int64_t batch_size, int64_t begin) {
  return order.subspan(begin, std::min<int64_t>(batch_size, std::ssize(order) - begin));
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

std::vector<std::span<const int32_t>> in_order(std::span<const int32_t> rows, int64_t batch_size) {
  if (batch_size < 1) throw UsageError(text("batch {}: must be at least 1", batch_size));
  batch_size = std::min<int64_t>(batch_size, std::ssize(rows));  // so that offset cannot overflow
  std::vector<std::span<const int32_t>> batches;
  for (int64_t offset = 0; offset < std::ssize(rows); offset += batch_size)
    batches.push_back(cut(rows, batch_size, offset));
  return batches;
}

Loader::Loader(std::span<const int32_t> rows, int64_t batch_size, uint64_t seed, Position from, int64_t epoch)
    : rows_(rows.begin(), rows.end()),
      batch_size_(batch_size),
      length_(epoch > 0 ? epoch : std::ssize(rows)),
      seed_(seed),
      next_(from) {
  if (batch_size < 1) throw UsageError(text("batch {}: must be at least 1", batch_size));
  if (batch_size > std::ssize(rows))
    throw UsageError(text("batch {}: larger than the training split of {} rows; use at most {}", batch_size,
                          grouped(rows.size()), rows.size()));
  CHECK(length_ <= std::ssize(rows), "loader: an epoch of {} of {} rows", length_, rows.size());
  CHECK(from.epoch >= 0 && from.offset >= 0 && from.offset <= length_,
        "loader: no example {} in epoch {} of a training split of {} rows", from.offset, from.epoch, rows.size());
}

std::span<const int32_t> Loader::next() {
  if (next_.offset == length_) {
    next_ = {next_.epoch + 1, 0};
    order_.clear();
  }
  if (order_.empty()) order_ = epoch_order(rows_, seed_, next_.epoch);
  const std::span<const int32_t> batch = cut(std::span(order_).first(length_), batch_size_, next_.offset);
  next_.offset += std::ssize(batch);
  return batch;
}

}  // namespace tapedeck
