#include "ops/key_value_cache.h"

#include "engine/launch.h"
#include "ops/attention.h"

namespace tapedeck {
namespace {

template <class T>
struct Append {  // keys and values of one new position per Block
  const T* qkv;
  T* kv;
  int64_t rows, capacity, length, cols;  // cols: 2·C
  HD void operator()(Block b, int64_t row) const {
    const T* const from = qkv + row * (cols / 2 * 3) + cols / 2;
    T* const to = kv + (row / rows * capacity + length + row % rows) * cols;
    b.each(cols, [&](int64_t j) { to[j] = from[j]; });
  }
};

}  // namespace

Tensor cached_attention(const Tensor& qkv, int64_t heads, KeyValueCache& cache) {
  const char* const op = "cached_attention";
  const AttentionSizes s = attention_sizes(op, qkv, heads);
  check_head_size(op, qkv.device(), s.head_size);
  const int64_t width = s.width(), length = cache.length + s.t;
  CHECK(cache.kv.shape[0] == s.batch && cache.kv.cols() == 2 * width,
        "{}: qkv is {} but the cache holds keys and values as {}: make one for this batch and width", op, qkv.shape,
        cache.kv.shape);
  CHECK(cache.kv.dtype == qkv.dtype && cache.kv.device() == qkv.device(),
        "{}: qkv is {} on {} but the cache {} on {}: make them alike", op, name(qkv.dtype), name(qkv.device()),
        name(cache.kv.dtype), name(cache.kv.device()));
  CHECK(length <= cache.capacity(), "{}: {} new positions do not fit behind {} of {}: make a larger cache", op, s.t,
        cache.length, cache.capacity());
  CHECK(!qkv.wants_gradient(), "{}: a cache passes no gradient, but qkv wants one: run it under NoTape", op);
  const Tensor y = Tensor::like(qkv, {s.batch, s.t, width});
  const Tensor lse = Tensor::empty({s.batch, heads, s.t}, sums_of(qkv.dtype), qkv.device());
  with_dtype(qkv.dtype, [&]<class T>() {
    T* const kv = cache.kv.ptr<T>();
    rows(qkv.device(), s.batch * s.t, Append<T>{qkv.ptr<T>(), kv, s.t, cache.capacity(), cache.length, 2 * width});
    const Attention<T> a{.q = qkv.ptr<T>(),
                         .k = kv,
                         .v = kv + width,
                         .batch = s.batch,
                         .heads = heads,
                         .head_size = s.head_size,
                         .queries = s.t,
                         .q_step = 3 * width,
                         .capacity = cache.capacity(),
                         .kv_step = 2 * width,
                         .visible = {nullptr, length, cache.length, true},
                         .scale = attention_scale<T>(s.head_size)};
    attention_forward(a, y, lse);
  });
  cache.length = length;
  return y;
}

}  // namespace tapedeck
