// cross_entropy   loss = mean over the counted rows of  log Σ_j e^(x_j) − x_label
//                 dx_j = (softmax(x)_j − [j = label]) · dloss / n
// n counts the rows whose label is not ignored_label; with none the loss and every gradient are exactly 0.
//
// The softmax is never stored: backward makes it again from the logits and each row's maximum and log Σ e^(x − max).
// These two are kept apart: added to a large maximum the logarithm would lose its digits. Where nobody else has the
// logits any more, neither the caller nor another op of the tape, backward writes dx over them.
//
// n is counted on the device, so that no step waits for its labels. A label that names no class is an error on the cpu,
// where the host can look at it at once; elsewhere the loss is NaN, and no memory is read by such a label.
#include "engine/launch.h"
#include "engine/math.h"
#include "engine/trace.h"
#include "ops/ops.h"

namespace tapedeck {
namespace {

template <class T>
struct CrossEntropyForward {  // one row per Block
  const T* x;
  const int32_t* labels;
  Acc<T>* top;
  Acc<T>* log_sum;
  Acc<T>* loss;
  int64_t cols;
  HD void operator()(Block b, int64_t row) const {
    const T* const in = x + row * cols;
    const int32_t label = labels[row];
    const auto highest = b.max(cols, [&](int64_t j) { return Acc<T>(in[j]); });
    const auto sum = b.sum(cols, [&](int64_t j) { return exp(Acc<T>(in[j]) - highest); });
    if (b.lane != 0) return;
    top[row] = highest;
    log_sum[row] = log(sum);
    const bool named = label >= 0 && label < cols;
    const Acc<T> right = named ? Acc<T>(in[label]) : Acc<T>(NAN);
    loss[row] = label == ignored_label ? Acc<T>(0) : log_sum[row] - (right - highest);
  }
};

template <class A>
struct MeanOfRows {  // factor = 1 / n, out = factor · Σ loss, by one Block
  const A* loss;
  const int32_t* labels;
  A *factor, *out;
  int64_t cols;
  HD void operator()(Block b, int64_t) const {
    const auto total = b.sum(cols, [&](int64_t i) { return loss[i]; });
    const int64_t n = b.sum(cols, [&](int64_t i) { return int64_t(labels[i] != ignored_label); });
    if (b.lane != 0) return;
    *factor = n == 0 ? A(0) : A(1.0 / double(n));
    *out = *factor * total;
  }
};

template <class T>
struct CrossEntropyBackward {
  const T* x;
  const int32_t* labels;
  const Acc<T>* top;
  const Acc<T>* log_sum;
  const Acc<T>* factor;
  const Acc<T>* dloss;
  Into<T> dx;
  int64_t cols;
  HD void operator()(Block b, int64_t row) const {
    const int64_t at = row * cols;
    const int32_t label = labels[row];
    const Acc<T> weight = label == ignored_label ? Acc<T>(0) : *factor * *dloss;
    const Acc<T> highest = top[row], log_total = log_sum[row];
    b.each(cols, [&](int64_t j) {
      const Acc<T> p = exp(Acc<T>(x[at + j]) - highest - log_total) - (j == label ? Acc<T>(1) : Acc<T>(0));
      dx(at + j, weight == Acc<T>(0) ? Acc<T>(0) : weight * p);  // 0 even where an ignored row's logits are not finite
    });
  }
};

void check_labels(const Tensor& labels, int64_t classes) {
  if (labels.device() != Device::cpu) return;
  const int32_t* const label = labels.ptr<int32_t>();
  for (int64_t row = 0; row < labels.count(); ++row)
    CHECK(label[row] == ignored_label || (label[row] >= 0 && label[row] < classes),
          "cross_entropy: label {} at row {}, but logits have {} classes (0…{})", label[row], row, classes,
          classes - 1);
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& labels) {
  CHECK(logits.rank() == 2 && labels.rank() == 1 && labels.count() == logits.rows(),
        "cross_entropy: takes logits [N, C] and labels [N], got {} and {}", logits.shape, labels.shape);
  CHECK(labels.dtype == DType::i32, "cross_entropy: labels must be i32, got {}", name(labels.dtype));
  CHECK(labels.device() == logits.device(), "cross_entropy: logits are on {} and labels on {}: move one with to()",
        name(logits.device()), name(labels.device()));
  CHECK(logits.cols() > 0, "cross_entropy: logits {} have no class", logits.shape);
  check_labels(labels, logits.cols());
  const int64_t n = logits.rows();
  Tensor top = Tensor::empty({n}, sums_of(logits.dtype), logits.device());
  Tensor log_sum = Tensor::like(top), losses = Tensor::like(top);
  Tensor factor = Tensor::like(top, {}), loss = Tensor::like(top, {});
  with_dtype(logits.dtype, [&]<class T>() {
    using A = Acc<T>;
    const Device device = logits.device();
    const int32_t* const label = labels.ptr<int32_t>();
    rows(
        device, n,
        CrossEntropyForward<T>{logits.ptr<T>(), label, top.ptr<A>(), log_sum.ptr<A>(), losses.ptr<A>(), logits.cols()});
    rows(device, 1, MeanOfRows<A>{losses.ptr<A>(), label, factor.ptr<A>(), loss.ptr<A>(), n});
  });
  const double elements = static_cast<double>(logits.count());
  trace_flops(5 * elements);  // the maximum, a difference, its exponential, their sum, the mean
  return record(
      "cross_entropy", loss, {&logits},
      [x = keep(logits), labels = keep(labels), top = keep(top), log_sum = keep(log_sum), factor = keep(factor),
       dx = want(logits), elements](const Tensor& dloss) {
        trace_flops(4 * elements);
        const bool ours = dx.fresh() && !x->data.shared();
        with_dtype(x->dtype, [&]<class T>() {
          const Into<T> into = ours ? Into<T>{x->ptr<T>()} : dx.into<T>();
          rows(x->device(), x->rows(),
               CrossEntropyBackward<T>{x->ptr<T>(), labels->ptr<int32_t>(), top->ptr<Acc<T>>(), log_sum->ptr<Acc<T>>(),
                                       factor->ptr<Acc<T>>(), dloss.ptr<Acc<T>>(), into, x->cols()});
        });
        if (ours) trace_moves(2.0 * static_cast<double>(x->bytes())), dx.give(*x);
      });
}

}  // namespace tapedeck
