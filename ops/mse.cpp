// mse: y = Σ (x − t)² / n        dx = 2 (x − t) / n · dy        dt = −dx
// One pass reads both; the difference is never stored.
#include "ops/ops.h"
#include "ops/reduce.h"

namespace tapedeck {
namespace {

template <class T>
struct SquaredError {
  const T *x, *target;
  HD Acc<T> operator()(int64_t i) const {
    const Acc<T> error = Acc<T>(x[i]) - Acc<T>(target[i]);
    return error * error;
  }
};

template <class T>
struct ErrorSlope {  // factor · (x − t) · dy, and dy is one number
  const Acc<T>* dy;
  double factor;
  HD Acc<T> operator()(Acc<T> x, Acc<T> target) const { return Acc<T>(factor) * *dy * (x - target); }
};

}  // namespace

Tensor mse(const Tensor& x, const Tensor& target) {
  CHECK(x.shape == target.shape, "mse: x is {} but the target {}: reshape one of them", x.shape, target.shape);
  CHECK(x.dtype == target.dtype, "mse: x is {} but the target {}: cast one of them", name(x.dtype), name(target.dtype));
  CHECK(x.device() == target.device(), "mse: x is on {} but the target on {}: move one with to()", name(x.device()),
        name(target.device()));
  CHECK(x.count() > 0, "mse: {} has no elements, so its mean is 0/0: leave it out", x.shape);
  const Tensor y = Tensor::empty({}, sums_of(x.dtype), x.device());
  const double n = static_cast<double>(x.count());
  with_dtype(x.dtype, [&]<class T>() {
    reduce_to<Acc<T>>(y, x.count(), 1 / n, SquaredError<T>{x.ptr<T>(), target.ptr<T>()});
  });
  return record("mse", y, {&x, &target},
                [x = keep(x), t = keep(target), dx = want(x), dt = want(target), n](const Tensor& dy) {
                  with_dtype(x->dtype, [&]<class T>() {
                    const auto slope = [&](const Want& to, double factor) {
                      if (to)
                        map(dy.device(), x->count(), to.into<T>(), ErrorSlope<T>{dy.ptr<Acc<T>>(), factor}, x->ptr<T>(),
                            t->ptr<T>());
                    };
                    slope(dx, 2 / n);
                    slope(dt, -2 / n);
                  });
                });
}

}  // namespace tapedeck
