// attention of other ops, one after the other: the plain form, which holds [B, heads, T, T] and has nothing to hide.
//   masked_softmax       w_j = e^(s x_j − top) / Σ_visible e^(s x_j − top) for visible j, else 0; a row that sees
//   nothing is 0
//                        dx_j = s w_j (dw_j − ⟨w, dw⟩)
//   attention_weights    masked_softmax(q · kᵀ / √d) in each head        [Vaswani et al. 2017, §3.2]
//   composed_attention   weights · v
// What is masked gets weight 0, and 0 · NaN is NaN: numbers behind an example's length must be finite here.
#include <cmath>

#include "engine/launch.h"
#include "engine/math.h"
#include "ops/attention.h"

namespace tapedeck {
namespace {

template <class T>
struct MaskedSoftmaxForward {  // one row per Block
  const T* x;
  T* y;
  Acc<T> scale;
  Visible visible;
  int64_t rows_of_example, cols;
  HD void operator()(Block b, int64_t row) const {
    const T* const in = x + row * cols;
    T* const out = y + row * cols;
    const int64_t n = visible.to(row / rows_of_example, row % visible.keys);
    const auto top = b.max(n, [&](int64_t j) { return scale * Acc<T>(in[j]); });
    const auto sum = b.sum(n, [&](int64_t j) { return exp(scale * Acc<T>(in[j]) - top); });
    b.each(n, [&](int64_t j) { out[j] = T(exp(scale * Acc<T>(in[j]) - top) / sum); });
    b.each(cols - n, [&](int64_t j) { out[n + j] = T(Acc<T>(0)); });
  }
};

template <class T>
struct MaskedSoftmaxBackward {
  const T* y;
  const T* dy;
  Into<T> dx;
  Acc<T> scale;
  Visible visible;
  int64_t rows_of_example, cols;
  HD void operator()(Block b, int64_t row) const {
    const int64_t at = row * cols, n = visible.to(row / rows_of_example, row % visible.keys);
    const auto dot = b.sum(n, [&](int64_t j) { return Acc<T>(y[at + j]) * Acc<T>(dy[at + j]); });
    b.each(n, [&](int64_t j) { dx(at + j, scale * Acc<T>(y[at + j]) * (Acc<T>(dy[at + j]) - dot)); });
    b.each(cols - n, [&](int64_t j) { dx(at + n + j, Acc<T>(0)); });  // whatever dy says there
  }
};

// Part 0, 1 or 2 of qkv (queries, keys, values) as a matrix for each head, its axes (0 B, 1 T, 2 heads, 3 d) in the
// order given, of which the first two become one.
Tensor heads_of(const Tensor& qkv, int part, const AttentionSizes& s, const std::vector<int>& axes) {
  const Tensor all = slice(qkv, 2, part * s.width(), (part + 1) * s.width());
  const Tensor ordered = permute(reshape(all, {s.batch, s.t, s.heads, s.head_size}), axes);
  return reshape(ordered, {s.batch * s.heads, ordered.shape[2], ordered.shape[3]});
}

Tensor weights_of(const char* op, const Tensor& qkv, int64_t heads, const AttentionMask& mask) {
  const AttentionSizes s = attention_sizes(op, qkv, heads);
  check_lengths(op, mask, qkv, s.batch, s.t);
  const Tensor scores = matmul(heads_of(qkv, 0, s, {0, 2, 1, 3}), heads_of(qkv, 1, s, {0, 2, 3, 1}));
  return masked_softmax(reshape(scores, {s.batch, heads, s.t, s.t}), 1 / std::sqrt(double(s.head_size)), mask);
}

}  // namespace

Tensor masked_softmax(const Tensor& scores, double scale, const AttentionMask& mask) {
  CHECK(scores.rank() == 4 && scores.shape[2] == scores.shape[3],
        "masked_softmax: takes scores [B, heads, T, T], got {}", scores.shape);
  const int64_t batch = scores.shape[0], t = scores.shape[3];
  check_lengths("masked_softmax", mask, scores, batch, t);
  const int64_t rows_of_example = scores.shape[1] * t;
  const Tensor weights = Tensor::like(scores);
  with_dtype(scores.dtype, [&]<class T>() {
    rows(scores.device(), scores.rows(),
         MaskedSoftmaxForward<T>{scores.ptr<T>(), weights.ptr<T>(), Acc<T>(scale), visible(mask, t), rows_of_example,
                                 t});
  });
  return record(
      "masked_softmax", weights, {&scores},
      [=, w = keep(weights), lengths = keep(mask.lengths), causal = mask.causal, dx = want(scores)](const Tensor& dw) {
        with_dtype(dw.dtype, [&]<class T>() {
          rows(dw.device(), dw.rows(),
               MaskedSoftmaxBackward<T>{w->ptr<T>(), dw.ptr<T>(), dx.into<T>(), Acc<T>(scale),
                                        visible({causal, *lengths}, t), rows_of_example, t});
        });
      });
}

Tensor attention_weights(const Tensor& qkv, int64_t heads, const AttentionMask& mask) {
  return weights_of("attention_weights", qkv, heads, mask);
}

Tensor composed_attention(const Tensor& qkv, int64_t heads, const AttentionMask& mask) {
  const Tensor weights = weights_of("composed_attention", qkv, heads, mask);
  const AttentionSizes s = attention_sizes("composed_attention", qkv, heads);
  const Tensor y = matmul(reshape(weights, {s.batch * heads, s.t, s.t}), heads_of(qkv, 2, s, {0, 2, 1, 3}));
  return reshape(permute(reshape(y, {s.batch, heads, s.t, s.head_size}), {0, 2, 1, 3}), {s.batch, s.t, s.width()});
}

}  // namespace tapedeck
