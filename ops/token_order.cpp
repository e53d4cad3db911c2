// cpu                 a counting sort by one thread, some ns a token [Knuth, TAOCP 3, §5.2]
// device with lanes   a merge sort in which every token finds its place by itself: in its run of 256 by counting who
//                     comes before it; in two merged runs by a binary search in the other one. 1 + log₂(N / 256) steps.
#include "ops/token_order.h"

#include <algorithm>
#include <vector>

#include "engine/launch.h"

namespace tapedeck {
namespace {

// How many of the n numbers are below the bound.
HD int64_t count_below(const int32_t* sorted, int64_t n, int64_t bound) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (sorted[middle] < bound)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

struct Sorted {  // ids in order, and where each comes from
  int32_t *id, *token;
  HD void put(int64_t at, int32_t its_id, int32_t its_token) const {
    id[at] = its_id;
    token[at] = its_token;
  }
};

struct SortRuns {
  const int32_t* ids;
  Sorted to;
  int64_t n, v;
  static constexpr int64_t length = 256;
  HD int32_t known(int64_t i) const { return ids[i] >= 0 && ids[i] < v ? ids[i] : int32_t(v); }
  HD void operator()(int64_t i) const {
    const int64_t first = i / length * length, end = first + length < n ? first + length : n;
    const int32_t mine = known(i);
    int64_t before = 0;
    for (int64_t j = first; j < end; ++j) {
      const int32_t other = known(j);
      before += other < mine || (other == mine && j < i);
    }
    to.put(first + before, mine, int32_t(i));
  }
};

struct MergeRuns {  // the left and the right one of every two
  Sorted from, to;
  int64_t n, length;
  HD void operator()(int64_t i) const {
    const int64_t left = i / (2 * length) * 2 * length;
    const int64_t right = left + length < n ? left + length : n, end = right + length < n ? right + length : n;
    const int64_t mine = from.id[i];  // of equal ids those of the left run come first
    const int64_t before = i < right ? (i - left) + count_below(from.id + right, end - right, mine)
                                     : (i - right) + count_below(from.id + left, right - left, mine + 1);
    to.put(left + before, from.id[i], from.token[i]);
  }
};

struct FindStarts {
  const int32_t* id;
  int32_t* start;
  int64_t n;
  HD void operator()(int64_t v) const { start[v] = int32_t(count_below(id, n, v)); }
};

void count_on_cpu(const Tensor& ids, int64_t v, const TokenOrder& order) {
  const int32_t* const id = ids.ptr<int32_t>();
  int32_t* const start = order.start.ptr<int32_t>();
  std::fill(start, start + v + 1, 0);
  for (int64_t i = 0; i < ids.count(); ++i) ++start[id[i] + 1];
  for (int64_t j = 0; j < v; ++j) start[j + 1] += start[j];
  std::vector<int32_t> next(start, start + v);
  for (int64_t i = 0; i < ids.count(); ++i) order.token.ptr<int32_t>()[next[static_cast<size_t>(id[i])]++] = int32_t(i);
}

}  // namespace

TokenOrder order_by_id(const Tensor& ids, int64_t v) {
  const int64_t n = ids.count();
  const Device device = ids.device();
  TokenOrder order{Tensor::empty({n}, DType::i32, device), Tensor::empty({v + 1}, DType::i32, device)};
  if (device == Device::cpu) {
    count_on_cpu(ids, v, order);
    return order;
  }
  Tensor id = Tensor::like(order.token);
  each(device, n, SortRuns{ids.ptr<int32_t>(), {id.ptr<int32_t>(), order.token.ptr<int32_t>()}, n, v});
  for (int64_t length = SortRuns::length; length < n; length *= 2) {
    const Tensor merged_id = Tensor::like(id), merged_token = Tensor::like(id);
    const Sorted from{id.ptr<int32_t>(), order.token.ptr<int32_t>()};
    each(device, n, MergeRuns{from, {merged_id.ptr<int32_t>(), merged_token.ptr<int32_t>()}, n, length});
    id = merged_id;
    order.token = merged_token;
  }
  each(device, v + 1, FindStarts{id.ptr<int32_t>(), order.start.ptr<int32_t>(), n});
  return order;
}

}  // namespace tapedeck
