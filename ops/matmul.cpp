// matmul   c = a · b                              da = dc · bᵀ,  db = aᵀ · dc
// linear   y = f(z),  z = x · weightᵀ + bias      dx = dz · weight,  dweight = dzᵀ · x,  dbias = Σ dz over the rows,
//                                                 where dz = dy ∘ f'(z)
// Every product is one gemm; bias and activation are its epilogue where gemm has one. One pass makes dz and dbias.
#include "ops/column_sums.h"
#include "ops/ops.h"
#include "ops/pointwise.h"

namespace tapedeck {
namespace {

// Calls f.template operator()<Functor>() for the functor of an activation other than none.
template <class F>
void with_activation(Activation activation, F&& f) {
  switch (activation) {
    case Activation::none: return;
    case Activation::relu: return f.template operator()<Relu>();
    case Activation::gelu: return f.template operator()<Gelu>();
    case Activation::gelu_erf: return f.template operator()<GeluErf>();
    case Activation::silu: return f.template operator()<Silu>();
    case Activation::tanh: return f.template operator()<Tanh>();
    case Activation::sigmoid: return f.template operator()<Sigmoid>();
  }
}

void gemm_into(const Want& want, Gemm g, Device device) {
  const Want::Target target = want.target();
  g.c = target.sum.data.begin();
  g.beta = target.add ? 1 : 0;
  gemm(device, g);
}

// One element of dz = dy ∘ f'(z), stored on the way to the column sums that are dbias. The slope reads z or y; the
// other is null.
template <class T, class F>
struct PreActivationGradient {
  const T* dy;
  const T* z;
  const T* y;
  T* dz;
  int64_t cols;
  HD Acc<T> operator()(int64_t i, int64_t j) const {
    const int64_t at = i * cols + j;
    const Acc<T> input = F::needs_input ? Acc<T>(z[at]) : Acc<T>(0);
    const Acc<T> output = F::needs_output ? Acc<T>(y[at]) : Acc<T>(0);
    const Acc<T> value = Acc<T>(dy[at]) * F().slope(input, output);
    dz[at] = T(value);
    return value;
  }
};

// Everything that linear's backward needs of its forward.
struct LinearShape {
  int64_t n, in, out;
  Activation activation;
};

Tensor pre_activation_gradient(const LinearShape& s, const Tensor& dy, const Tensor& z, const Tensor& y,
                               const Want& dbias) {
  const Device device = dy.device();
  if (s.activation == Activation::none) {
    if (dbias)
      with_dtype(dy.dtype, [&]<class T>() {
        sum_columns(device, s.n, s.out, dbias.into<T>(), Element<T>{dy.ptr<T>(), s.out});
      });
    return dy;
  }
  Tensor dz = Tensor::like(dy);
  with_dtype(dy.dtype, [&]<class T>() {
    const T* const input = z ? z.ptr<T>() : nullptr;
    const T* const output = y ? y.ptr<T>() : nullptr;
    const Into<T> sums = dbias ? dbias.into<T>() : Into<T>{nullptr};
    with_activation(s.activation, [&]<class F>() {
      sum_columns(device, s.n, s.out, sums,
                  PreActivationGradient<T, F>{dy.ptr<T>(), input, output, dz.ptr<T>(), s.out});
    });
  });
  return dz;
}

}  // namespace

Activation find_activation(std::string_view wanted) {
  constexpr std::pair<std::string_view, Activation> known[] = {
      {"none", Activation::none},         {"relu", Activation::relu}, {"gelu", Activation::gelu},
      {"gelu_erf", Activation::gelu_erf}, {"silu", Activation::silu}, {"tanh", Activation::tanh},
      {"sigmoid", Activation::sigmoid}};
  for (const auto& [name, activation] : known)
    if (name == wanted) return activation;
  throw UsageError(text("activation {}: unknown, use relu, gelu, gelu_erf, silu, tanh, sigmoid or none", wanted));
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  CHECK(a.rank() == b.rank() && (a.rank() == 2 || a.rank() == 3),
        "matmul: takes two matrices or two batches of them, got {} and {}", a.shape, b.shape);
  CHECK(a.shape[-1] == b.shape[-2] && (a.rank() == 2 || a.shape[0] == b.shape[0]), "matmul: {} does not fit {}",
        a.shape, b.shape);
  CHECK(a.dtype == b.dtype, "matmul: both sides need one type, got {} and {}: cast one", name(a.dtype), name(b.dtype));
  CHECK(a.device() == b.device(), "matmul: one side is on {}, the other on {}: move one with to()", name(a.device()),
        name(b.device()));
  const int64_t m = a.shape[-2], k = a.shape[-1], n = b.shape[-1], batch = a.rank() == 3 ? a.shape[0] : 1;
  Tensor c = Tensor::like(a, a.shape.with_last(n));
  Gemm g{.m = m,
         .n = n,
         .k = k,
         .dtype = a.dtype,
         .a = a.data.begin(),
         .b = b.data.begin(),
         .c = c.data.begin(),
         .batch = batch,
         .stride_a = m * k,
         .stride_b = k * n,
         .stride_c = m * n};
  gemm(a.device(), g);
  return record("matmul", c, {&a, &b},
                [a = keep(a), b = keep(b), da = want(a), db = want(b), m, n, k, batch](const Tensor& dc) {
                  if (da)
                    gemm_into(da,
                              {.m = m,
                               .n = k,
                               .k = n,
                               .transpose_b = true,
                               .dtype = dc.dtype,
                               .a = dc.data.begin(),
                               .b = b->data.begin(),
                               .batch = batch,
                               .stride_a = m * n,
                               .stride_b = k * n,
                               .stride_c = m * k},
                              dc.device());
                  if (db)
                    gemm_into(db,
                              {.m = k,
                               .n = n,
                               .k = m,
                               .transpose_a = true,
                               .dtype = dc.dtype,
                               .a = a->data.begin(),
                               .b = dc.data.begin(),
                               .batch = batch,
                               .stride_a = m * k,
                               .stride_b = m * n,
                               .stride_c = k * n},
                              dc.device());
                });
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  CHECK(weight.rank() == 2 && x.rank() >= 1, "linear: takes x [..., in] and weight [out, in], got {} and {}", x.shape,
        weight.shape);
  CHECK(x.cols() == weight.cols(), "linear: x ends in {} but weight is {}: make in_features {}, or reshape x first",
        x.cols(), weight.shape, x.cols());
  CHECK(!bias || bias.shape == Shape{weight.shape[0]}, "linear: weight {} needs a bias of {} values, got {}",
        weight.shape, weight.shape[0], bias.shape);
  CHECK(x.dtype == weight.dtype && (!bias || bias.dtype == x.dtype), "linear: x is {} but weight is {}: cast one",
        name(x.dtype), name(weight.dtype));
  CHECK(x.device() == weight.device() && (!bias || bias.device() == x.device()),
        "linear: x is on {}, weight on {}, bias on {}: move them with to()", name(x.device()), name(weight.device()),
        name(bias ? bias.device() : x.device()));
  const LinearShape s{x.rows(), x.cols(), weight.shape[0], activation};
  const Device device = x.device();
  Tensor y = Tensor::like(x, x.shape.with_last(s.out));
  Tensor z;  // the pre-activation, where the slope reads it
  with_activation(activation, [&]<class F>() {
    if (F::needs_input) z = Tensor::like(y);
  });

  Gemm g{.m = s.n,
         .n = s.out,
         .k = s.in,
         .transpose_b = true,
         .dtype = x.dtype,
         .a = x.data.begin(),
         .b = weight.data.begin(),
         .c = y.data.begin()};
  if (bias) {
    g.bias = bias.data.begin();
    g.epilogue = Epilogue::bias;
    if (activation == Activation::relu) g.epilogue = Epilogue::bias_relu;
    if (activation == Activation::gelu) g.epilogue = Epilogue::bias_gelu, g.aux = z.data.begin();
  }
  const bool applied = g.epilogue == Epilogue::bias_relu || g.epilogue == Epilogue::bias_gelu;
  if (!applied && z) g.c = z.data.begin();
  gemm(device, g);
  if (!applied)
    with_dtype(x.dtype, [&]<class T>() {
      with_activation(activation,
                      [&]<class F>() { map(device, y.count(), Into<T>{y.ptr<T>()}, F(), static_cast<const T*>(g.c)); });
    });

  Tensor output;  // kept only where the slope reads it
  with_activation(activation, [&]<class F>() {
    if (F::needs_output) output = y;
  });
  return record(
      "linear", y, {&x, &weight, &bias},
      [s, x = keep(x), weight = keep(weight), z = keep(z), y = keep(output), dx = want(x), dweight = want(weight),
       dbias = want(bias)](const Tensor& dy) {
        const Tensor dz = pre_activation_gradient(s, dy, *z, *y, dbias);
        if (dx)
          gemm_into(
              dx, {.m = s.n, .n = s.in, .k = s.out, .dtype = dz.dtype, .a = dz.data.begin(), .b = weight->data.begin()},
              dz.device());
        if (dweight)
          gemm_into(dweight,
                    {.m = s.out,
                     .n = s.in,
                     .k = s.n,
                     .transpose_a = true,
                     .dtype = dz.dtype,
                     .a = dz.data.begin(),
                     .b = x->data.begin()},
                    dz.device());
      });
}

}  // namespace tapedeck
