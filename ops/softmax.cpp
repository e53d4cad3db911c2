// Over the last axis:
//   softmax      y = e^(x − max x) / Σ e^(x − max x)      dx = y ∘ (dy − ⟨y, dy⟩)     [Martins & Astudillo 2016, §2.5]
//   log_softmax  y = x − max x − log Σ e^(x − max x)      dx = dy − e^y · Σ dy
// Without the shift by the maximum e^x would overflow, in f32 from x = 89 on.
#include "engine/launch.h"
#include "engine/math.h"
#include "ops/ops.h"

namespace tapedeck {
namespace {

template <class T>
struct SoftmaxForward {  // one row per Block
  const T* x;
  T* y;
  int64_t cols;
  HD void operator()(Block b, int64_t row) const {
    const T* const in = x + row * cols;
    T* const out = y + row * cols;
    const auto top = b.max(cols, [&](int64_t j) { return Acc<T>(in[j]); });
    const auto sum = b.sum(cols, [&](int64_t j) { return exp(Acc<T>(in[j]) - top); });
    b.each(cols, [&](int64_t j) { out[j] = T(exp(Acc<T>(in[j]) - top) / sum); });
  }
};

template <class T>
struct SoftmaxBackward {
  const T* y;
  const T* dy;
  Into<T> dx;
  int64_t cols;
  HD void operator()(Block b, int64_t row) const {
    const int64_t at = row * cols;
    const auto dot = b.sum(cols, [&](int64_t j) { return Acc<T>(y[at + j]) * Acc<T>(dy[at + j]); });
    b.each(cols, [&](int64_t j) { dx(at + j, Acc<T>(y[at + j]) * (Acc<T>(dy[at + j]) - dot)); });
  }
};

template <class T>
struct LogSoftmaxForward {
  const T* x;
  T* y;
  int64_t cols;
  HD void operator()(Block b, int64_t row) const {
    const T* const in = x + row * cols;
    T* const out = y + row * cols;
    const auto top = b.max(cols, [&](int64_t j) { return Acc<T>(in[j]); });
    const auto log_sum = log(b.sum(cols, [&](int64_t j) { return exp(Acc<T>(in[j]) - top); }));
    b.each(cols, [&](int64_t j) { out[j] = T(Acc<T>(in[j]) - top - log_sum); });
  }
};

template <class T>
struct LogSoftmaxBackward {
  const T* y;
  const T* dy;
  Into<T> dx;
  int64_t cols;
  HD void operator()(Block b, int64_t row) const {
    const int64_t at = row * cols;
    const auto sum = b.sum(cols, [&](int64_t j) { return Acc<T>(dy[at + j]); });
    b.each(cols, [&](int64_t j) { dx(at + j, Acc<T>(dy[at + j]) - exp(Acc<T>(y[at + j])) * sum); });
  }
};

template <template <class> class Forward, template <class> class Backward>
Tensor over_rows(const char* name, const Tensor& x) {
  CHECK(x.rank() >= 1, "{}: needs an axis to normalise, got a scalar", name);
  Tensor y = Tensor::like(x);
  with_dtype(x.dtype, [&]<class T>() { rows(x.device(), x.rows(), Forward<T>{x.ptr<T>(), y.ptr<T>(), x.cols()}); });
  return record(name, y, {&x}, [y = keep(y), dx = want(x)](const Tensor& dy) {
    with_dtype(dy.dtype, [&]<class T>() {
      rows(dy.device(), dy.rows(), Backward<T>{y->ptr<T>(), dy.ptr<T>(), dx.into<T>(), dy.cols()});
    });
  });
}

}  // namespace

Tensor softmax(const Tensor& x) { return over_rows<SoftmaxForward, SoftmaxBackward>("softmax", x); }
Tensor log_softmax(const Tensor& x) { return over_rows<LogSoftmaxForward, LogSoftmaxBackward>("log_softmax", x); }

}  // namespace tapedeck
