// sum: y = Σ x    dx = dy everywhere.        mean: y = Σ x / n    dx = dy / n everywhere.
// The order of addition is in reduce.h.
#include "ops/reduce.h"

#include "ops/ops.h"

namespace tapedeck {
namespace {

template <class T>
struct Element {
  const T* x;
  HD Acc<T> operator()(int64_t i) const { return Acc<T>(x[i]); }
};

template <class T>
struct Broadcast {  // dx = factor · dy, and dy is one number
  const T* dy;
  Into<T> dx;
  double factor;
  HD void operator()(int64_t i) const { dx(i, Acc<T>(factor) * Acc<T>(*dy)); }
};

Tensor scaled_sum(const char* name, const Tensor& x, double factor) {
  const Tensor y = Tensor::like(x, Shape{});
  with_dtype(x.dtype, [&]<class T>() { reduce_to<T>(y, x.count(), factor, Element<T>{x.ptr<T>()}); });
  return record(name, y, {&x}, [dx = want(x), n = x.count(), factor](const Tensor& dy) {
    with_dtype(dy.dtype, [&]<class T>() { each(dy.device(), n, Broadcast<T>{dy.ptr<T>(), dx.into<T>(), factor}); });
  });
}

}  // namespace

Tensor sum(const Tensor& x) { return scaled_sum("sum", x, 1); }

Tensor mean(const Tensor& x) {
  CHECK(x.count() > 0, "mean: {} has no elements, so its mean is 0/0: leave it out", x.shape);
  return scaled_sum("mean", x, 1.0 / static_cast<double>(x.count()));
}

}  // namespace tapedeck
