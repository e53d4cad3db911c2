// attention   y = softmax(q · kᵀ / √d) · v in each head, fused: no T × T matrix exists at any time, so that memory
// grows
//             with T. The tape keeps qkv, y and log Σ e^score of each query; backward makes the weights again.
// [Vaswani et al. 2017, §3.2; Dao et al. 2022]
#include "ops/attention.h"

#include <cmath>

#include "engine/trace.h"

namespace tapedeck {
namespace {

template <class T>
Attention<T> attention_of(const Tensor& qkv, const AttentionSizes& s, const Visible& visible) {
  const T* const q = qkv.ptr<T>();
  return {.q = q,
          .k = q + s.width(),
          .v = q + 2 * s.width(),
          .batch = s.batch,
          .heads = s.heads,
          .head_size = s.head_size,
          .queries = s.t,
          .q_step = 3 * s.width(),
          .capacity = s.t,
          .kv_step = 3 * s.width(),
          .visible = visible,
          .scale = attention_scale<T>(s.head_size)};
}

// Multiplications and additions of so many products of queries and keys, those that a causal mask leaves.
double flops(const AttentionSizes& s, bool causal, int products) {
  const double t = static_cast<double>(s.t), seen = causal ? t * (t + 1) / 2 : t * t;
  return 2.0 * products * static_cast<double>(s.batch * s.width()) * seen;
}

}  // namespace

Tensor attention(const Tensor& qkv, int64_t heads, const AttentionMask& mask) {
  const AttentionSizes s = attention_sizes("attention", qkv, heads);
  check_lengths("attention", mask, qkv, s.batch, s.t);
  check_head_size("attention", qkv.device(), s.head_size);
  const Tensor y = Tensor::like(qkv, {s.batch, s.t, s.width()});
  const Tensor lse = Tensor::empty({s.batch, heads, s.t}, sums_of(qkv.dtype), qkv.device());
  with_dtype(qkv.dtype, [&]<class T>() { attention_forward(attention_of<T>(qkv, s, visible(mask, s.t)), y, lse); });
  trace_flops(flops(s, mask.causal, 2));
  return record("attention", y, {&qkv},
                [s, qkv = keep(qkv), y = keep(y), lse = keep(lse), lengths = keep(mask.lengths), causal = mask.causal,
                 dqkv = want(qkv)](const Tensor& dy) {
                  trace_flops(flops(s, causal, 5));  // the scores once more, and a gradient of each operand
                  with_dtype(dy.dtype, [&]<class T>() {
                    const Into<T> to = dqkv.into<T>();
                    const int64_t width = s.width();
                    attention_backward(dy.device(), attention_of<T>(*qkv, s, visible({causal, *lengths}, s.t)),
                                       AttentionGradient<T>{y->ptr<T>(),
                                                            dy.ptr<T>(),
                                                            lse->ptr<Acc<T>>(),
                                                            to,
                                                            {to.p + width, to.add},
                                                            {to.p + 2 * width, to.add}});
                  });
                });
}

AttentionSizes attention_sizes(const char* op, const Tensor& qkv, int64_t heads) {
  CHECK(qkv.rank() == 3, "{}: takes qkv [B, T, 3·C], got {}", op, qkv.shape);
  CHECK(heads >= 1, "{}: needs at least one head, got {}", op, heads);
  CHECK(qkv.cols() > 0 && qkv.cols() % (3 * heads) == 0,
        "{}: qkv {} ends in {}, which is no multiple of 3 · {} heads: each head has equally many queries, keys and "
        "values",
        op, qkv.shape, qkv.cols(), heads);
  return {qkv.shape[0], qkv.shape[1], heads, qkv.cols() / 3 / heads};
}

void check_no_past(const Visible& visible) {
  CHECK(visible.past == 0, "attention: its gradient is one of queries that are the keys, but {} keys are before them",
        visible.past);
}

void check_head_size(const char* op, Device device, int64_t head_size) {
  CHECK(device == Device::cpu || head_size <= max_tiled_head,
        "{}: heads of {} numbers, but on {} they have at most {}: take more heads, or composed_attention", op,
        head_size, name(device), +max_tiled_head);
}

void check_lengths(const char* op, const AttentionMask& mask, const Tensor& x, int64_t batch, int64_t t) {
  const Tensor& lengths = mask.lengths;
  if (!lengths) return;
  CHECK(lengths.rank() == 1 && lengths.count() == batch, "{}: needs a length for each of {} examples, got {}", op,
        batch, lengths.shape);
  CHECK(lengths.dtype == DType::i32, "{}: lengths must be i32, got {}", op, name(lengths.dtype));
  CHECK(lengths.device() == x.device(), "{}: the numbers are on {} and the lengths on {}: move one with to()", op,
        name(x.device()), name(lengths.device()));
  if (lengths.device() != Device::cpu) return;
  const int32_t* const length = lengths.ptr<int32_t>();
  for (int64_t b = 0; b < batch; ++b)
    CHECK(length[b] >= 0 && length[b] <= t, "{}: example {} has length {}, but there are {} positions (0…{})", op, b,
          length[b], t, t);
}

}  // namespace tapedeck
