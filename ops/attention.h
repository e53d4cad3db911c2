// What the forms of attention share: which keys a query sees, and the checks of their arguments. For files of ops/
// only.
#pragma once
#include <cmath>

#include "engine/hd.h"
#include "engine/into.h"
#include "ops/ops.h"

namespace tapedeck {

// A query sees the first so many keys, whatever the mask: query i stands at position past + i among the keys.
struct Visible {
  const int32_t* lengths;  // of each example; null: every key exists
  int64_t keys, past;      // past: keys before the first query
  bool causal;

  HD int64_t existing(int64_t example) const {  // keys. A length that is none is cut to 0…keys: no memory is read by it
    if (!lengths) return keys;
    const int64_t length = lengths[example];
    return length < 0 ? 0 : length < keys ? length : keys;
  }
  HD int64_t to(int64_t example, int64_t query) const { return of(existing(example), query); }
  HD int64_t of(int64_t exist, int64_t query) const {  // keys that this query sees, 0 when it does not exist itself
    const int64_t position = past + query;
    if (position >= exist) return 0;
    return causal ? position + 1 : exist;
  }
};

// Of T queries that are the keys as well.
inline Visible visible(const AttentionMask& mask, int64_t t) {
  return {mask.lengths ? mask.lengths.ptr<int32_t>() : nullptr, t, 0, mask.causal};
}

// One attention, fused: where its numbers lie. Head 0 of example 0 has its queries from q on, one each q_step numbers;
// its keys and values from k and v on, one each kv_step. y and lse are new tensors: [batch, queries, heads · head_size]
// and [batch, heads, queries].
template <class T>
struct Attention {
  const T* q;
  const T* k;
  const T* v;
  int64_t batch, heads, head_size;
  int64_t queries, q_step;
  int64_t capacity, kv_step;  // rows that k and v have for each example; the first visible.keys are used
  Visible visible;
  Acc<T> scale;

  HD int64_t q_at(int64_t example, int64_t head, int64_t row) const {
    return (example * queries + row) * q_step + head * head_size;
  }
  HD int64_t kv_at(int64_t example, int64_t head, int64_t row) const {
    return (example * capacity + row) * kv_step + head * head_size;
  }
  HD int64_t y_step() const { return heads * head_size; }
  HD int64_t y_at(int64_t example, int64_t head, int64_t row) const {
    return (example * queries + row) * y_step() + head * head_size;
  }
  HD int64_t row_at(int64_t example, int64_t head, int64_t row) const {
    return (example * heads + head) * queries + row;
  }
};

// What its backward reads, and where the gradients go: they lie as q, k and v do.
template <class T>
struct AttentionGradient {
  const T* y;
  const T* dy;
  const Acc<T>* lse;
  Into<T> dq, dk, dv;
};

// The fused form: on the CPU in strips, on devices with lanes in tiles of shared memory.
//   y and lse = log Σ e^score of each query, −∞ where it sees nothing
//   the gradient: all of dq, dk and dv is written, or added to, 0 too for what does not exist
template <class T>
void attention_in_strips(const Attention<T>& a, T* y, Acc<T>* lse);
template <class T>
void attention_gradient_in_strips(const Attention<T>& a, const AttentionGradient<T>& g);
template <class T>
void attention_in_tiles(Device device, const Attention<T>& a, T* y, Acc<T>* lse);
template <class T>
void attention_gradient_in_tiles(Device device, const Attention<T>& a, const AttentionGradient<T>& g);
inline constexpr int64_t max_tiled_head = 128;

// Throws Error where keys are before the first query: the gradient has no part for them.
void check_no_past(const Visible& visible);

template <class T>
void attention_forward(const Attention<T>& a, const Tensor& y, const Tensor& lse) {
  if (y.device() == Device::cpu)
    attention_in_strips(a, y.ptr<T>(), lse.ptr<Acc<T>>());
  else
    attention_in_tiles(y.device(), a, y.ptr<T>(), lse.ptr<Acc<T>>());
}
template <class T>
void attention_backward(Device device, const Attention<T>& a, const AttentionGradient<T>& g) {
  check_no_past(a.visible);
  if (device == Device::cpu)
    attention_gradient_in_strips(a, g);
  else
    attention_gradient_in_tiles(device, a, g);
}
template <class T>
Acc<T> attention_scale(int64_t head_size) {
  return Acc<T>(1 / std::sqrt(static_cast<double>(head_size)));
}

// Throws Error where a device other than the cpu has no tiles for heads of that size.
void check_head_size(const char* op, Device device, int64_t head_size);

struct AttentionSizes {
  int64_t batch, t, heads, head_size;
  int64_t width() const { return heads * head_size; }
};

// Throws Error in the name of `op` unless qkv is [B, T, 3·C] and `heads` divides C.
AttentionSizes attention_sizes(const char* op, const Tensor& qkv, int64_t heads);
// Throws unless the lengths are i32 [batch] on x's device, on the cpu each in 0…t; none are fine.
void check_lengths(const char* op, const AttentionMask& mask, const Tensor& x, int64_t batch, int64_t t);

}  // namespace tapedeck
