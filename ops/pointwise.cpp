// Element-wise ops. The formulas are functors in pointwise.h, the pass over one tensor is in unary.h; here are their
// names, the ops of two tensors, and bias, which adds one row to every row.
#include "ops/pointwise.h"

#include "engine/column_sums.h"
#include "ops/ops.h"
#include "ops/unary.h"

namespace tapedeck {

Tensor scale(const Tensor& x, double factor) { return unary("scale", x, Scale{factor}); }
Tensor relu(const Tensor& x) { return unary("relu", x, Relu{}); }
Tensor gelu(const Tensor& x) { return unary("gelu", x, Gelu{}); }
Tensor gelu_erf(const Tensor& x) { return unary("gelu_erf", x, GeluErf{}); }
Tensor silu(const Tensor& x) { return unary("silu", x, Silu{}); }
Tensor tanh(const Tensor& x) { return unary("tanh", x, Tanh{}); }
Tensor sigmoid(const Tensor& x) { return unary("sigmoid", x, Sigmoid{}); }
Tensor exp(const Tensor& x) { return unary("exp", x, Exp{}); }
Tensor log(const Tensor& x) { return unary("log", x, Log{}); }

namespace {

template <class F>
Tensor binary(const char* name, const Tensor& a, const Tensor& b, const F& f) {
  CHECK(a.shape == b.shape, "{}: shapes {} and {} differ: reshape one, or use bias() to add a row", name, a.shape,
        b.shape);
  CHECK(a.dtype == b.dtype, "{}: {} and {} do not mix: cast one of them", name, tapedeck::name(a.dtype),
        tapedeck::name(b.dtype));
  CHECK(a.device() == b.device(), "{}: one tensor is on {}, the other on {}: move one with to()", name,
        tapedeck::name(a.device()), tapedeck::name(b.device()));
  Tensor y = Tensor::like(a);
  with_dtype(a.dtype, [&]<class T>() { map(a.device(), a.count(), Into<T>{y.ptr<T>()}, f, a.ptr<T>(), b.ptr<T>()); });
  return y;
}

// dx = factor ∘ dy
void give_product(const Want& dx, const Tensor& dy, const Tensor& factor) {
  with_dtype(dy.dtype,
             [&]<class T>() { map(dy.device(), dy.count(), dx.into<T>(), Mul{}, dy.ptr<T>(), factor.ptr<T>()); });
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {  // da = dy, db = dy
  return record("add", binary("add", a, b, Add{}), {&a, &b}, [da = want(a), db = want(b)](const Tensor& dy) {
    if (da) da.give(dy);
    if (db) db.give(dy);
  });
}

Tensor sub(const Tensor& a, const Tensor& b) {  // da = dy, db = −dy
  return record("sub", binary("sub", a, b, Sub{}), {&a, &b}, [da = want(a), db = want(b)](const Tensor& dy) {
    if (da) da.give(dy);
    if (!db) return;
    with_dtype(dy.dtype, [&]<class T>() { map(dy.device(), dy.count(), db.into<T>(), Scale{-1}, dy.ptr<T>()); });
  });
}

Tensor mul(const Tensor& a, const Tensor& b) {  // da = dy ∘ b, db = dy ∘ a
  const Tensor y = binary("mul", a, b, Mul{});
  const Want da = want(a), db = want(b);
  return record("mul", y, {&a, &b},
                [da, db, a = keep(db ? a : Tensor()), b = keep(da ? b : Tensor())](const Tensor& dy) {
                  if (da) give_product(da, dy, *b);
                  if (db) give_product(db, dy, *a);
                });
}

namespace {

template <class T>
struct BiasForward {  // one row per Block
  const T *x, *b;
  T* y;
  int64_t cols;
  HD void operator()(Block block, int64_t row) const {
    const T* const in = x + row * cols;
    T* const out = y + row * cols;
    block.each(cols, [&](int64_t j) { out[j] = T(Acc<T>(in[j]) + Acc<T>(b[j])); });
  }
};

}  // namespace

Tensor bias(const Tensor& x, const Tensor& b) {  // y = x + b in every row;   dx = dy, db = Σ dy over the rows
  CHECK(x.rank() >= 1 && b.rank() == 1 && b.cols() == x.cols(),
        "bias: x is {} and the bias {}: the bias needs one axis, as long as x's last", x.shape, b.shape);
  CHECK(x.dtype == b.dtype, "bias: x is {} and the bias {}: cast one of them", name(x.dtype), name(b.dtype));
  CHECK(x.device() == b.device(), "bias: x is on {} and the bias on {}: move one with to()", name(x.device()),
        name(b.device()));
  Tensor y = Tensor::like(x);
  with_dtype(x.dtype, [&]<class T>() {
    rows(x.device(), x.rows(), BiasForward<T>{x.ptr<T>(), b.ptr<T>(), y.ptr<T>(), x.cols()});
  });
  return record("bias", y, {&x, &b}, [dx = want(x), db = want(b)](const Tensor& dy) {
    if (dx) dx.give(dy);
    if (!db) return;
    with_dtype(dy.dtype, [&]<class T>() {
      db.into_sums<T>([&](const auto& into) {
        sum_columns(dy.device(), dy.rows(), dy.cols(), into, Element<T>{dy.ptr<T>(), dy.cols()});
      });
    });
  });
}

}  // namespace tapedeck
