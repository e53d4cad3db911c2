// reduce_to(out, n, factor, value): out = factor · Σ value(i) over i < n, in an order that no thread count changes.
// Chunks of 4,096 elements are summed by one Block each, in Acc<T> (f32, or f64 for f64); their sums by one Block in
// f64. An empty sum is 0.
#pragma once
#include "engine/launch.h"
#include "engine/tensor.h"

namespace tapedeck {

inline constexpr int64_t reduce_chunk = 4096;

template <class A, class Value>
struct SumChunks {  // one chunk per Block
  Value value;
  A* sums;
  int64_t n;
  static constexpr int64_t cols = reduce_chunk;
  HD void operator()(Block b, int64_t chunk) const {
    const int64_t first = chunk * cols, left = n - first;
    const A total = b.sum(left < cols ? left : cols, [&](int64_t j) { return value(first + j); });
    if (b.lane == 0) sums[chunk] = total;
  }
};

template <class T>
struct SumOfSums {  // one Block
  const Acc<T>* sums;
  T* out;
  double factor;
  int64_t cols;
  HD void operator()(Block b, int64_t) const {
    const double total = b.sum(cols, [&](int64_t j) { return double(sums[j]); });
    if (b.lane == 0) *out = T(factor * total);
  }
};

// out: a tensor of one T; value: a functor (int64_t) -> Acc<T>.
template <class T, class Value>
void reduce_to(const Tensor& out, int64_t n, double factor, const Value& value) {
  using A = Acc<T>;
  const int64_t chunks = (n + reduce_chunk - 1) / reduce_chunk;
  const Tensor sums = Tensor::empty({chunks}, dtype_of<A>, out.device());
  rows(out.device(), chunks, SumChunks<A, Value>{value, sums.ptr<A>(), n});
  rows(out.device(), 1, SumOfSums<T>{sums.ptr<A>(), out.ptr<T>(), factor, chunks});
}

}  // namespace tapedeck
