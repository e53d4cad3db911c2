// unary(name, x, f): the op y = f(x), element by element, for any functor of pointwise.h or composition of them:
//   Tensor scaled_silu(const Tensor& x) { return unary("scaled_silu", x, Then{Scale{1.7}, Silu{}}); }
#pragma once
#include "engine/launch.h"
#include "engine/tape.h"
#include "ops/pointwise.h"

namespace tapedeck {

template <class F>
Tensor unary(const char* name, const Tensor& x, const F& f) {
  static_assert(!(F::needs_input && F::needs_output), "keep one of x and y: the slope can compute y from x");
  Tensor y = Tensor::like(x);
  with_dtype(x.dtype, [&]<class T>() { map(x.device(), x.count(), Into<T>{y.ptr<T>()}, f, x.ptr<T>()); });
  const Tensor read = F::needs_input ? x : F::needs_output ? y : Tensor();
  return record(name, y, {&x}, [f, kept = keep(read), dx = want(x)](const Tensor& dy) {
    with_dtype(dy.dtype, [&]<class T>() {
      const Into<T> into = dx.into<T>();
      if constexpr (F::needs_input || F::needs_output)
        map(dy.device(), dy.count(), into, ChainRule<F>{f}, dy.ptr<T>(), kept->ptr<T>());
      else
        map(dy.device(), dy.count(), into, ChainRule<F>{f}, dy.ptr<T>());
    });
  });
}

}  // namespace tapedeck
