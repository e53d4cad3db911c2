// linear   y = f(z),  z = x · weightᵀ + bias      dx = dz · weight,  dweight = dzᵀ · x,  dbias = Σ dz over the rows,
//                                                 where dz = dy ∘ f'(z)
// Every product is one gemm. Bias and activation are its epilogue where gemm has one. Where the gemm that made dy did
// not make dz and dbias of it (see engine/offer.h), one pass makes both.
#include "engine/column_sums.h"
#include "engine/recompute.h"
#include "engine/trace.h"
#include "ops/gradient_squares.h"
#include "ops/ops.h"
#include "ops/pointwise.h"
#include "ops/product.h"

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

struct Needs {  // what an activation's slope reads
  bool input = false, output = false;
};
Needs needs_of(Activation activation) {
  Needs needs;
  with_activation(activation, [&]<class F>() { needs = {F::needs_input, F::needs_output}; });
  return needs;
}

// y = f(z), where z may be y itself.
void activate(Activation activation, const Tensor& y, const Tensor& z) {
  with_dtype(y.dtype, [&]<class T>() {
    with_activation(activation, [&]<class F>() { map(y.device(), y.count(), Into<T>{y.ptr<T>()}, F(), z.ptr<T>()); });
  });
}

// Makes bias and activation part of the product, as far as gemm can. True when the activation is. `mask` may be empty.
bool fuse(Gemm& g, const Tensor& bias, Activation activation, const Tensor& z, const Tensor& mask) {
  if (!bias) return false;
  g.bias = bias.data.begin();
  g.epilogue = Epilogue::bias;
  if (activation == Activation::relu) g.epilogue = Epilogue::bias_relu, g.aux = mask.data.begin();
  if (activation == Activation::gelu) g.epilogue = Epilogue::bias_gelu, g.aux = z.data.begin();
  return g.epilogue != Epilogue::bias;
}

// Memory for the mask that the backward epilogue of relu reads. None on the CPU, where writing it would be one more
// pass of the forward, for the one that it saves; gelu's reads z, which is kept anyway.
Tensor relu_mask(const Tensor& y, const Tensor& bias, Activation activation) {
  if (activation != Activation::relu || !bias || y.device() == Device::cpu || !recording()) return {};
  return Tensor::empty({y.rows(), relu_mask_row_bytes(y.cols()) / 4}, DType::i32, y.device());
}

std::shared_ptr<Offer> make_offer(Activation activation, const Tensor& y, const Tensor& z, const Tensor& mask,
                                  const Want& dbias) {
  if (mask) return std::make_shared<Offer>(Offer{Epilogue::drelu, keep(mask), keep(y), dbias});
  if (activation != Activation::gelu) return nullptr;
  return std::make_shared<Offer>(Offer{Epilogue::dgelu, keep(z), keep({}), dbias});
}

// Whether activate() makes the bits of y from z, also where a product's epilogue made them. That of the CPU does the
// same, but to a z that is not yet rounded to 16 bits; cuBLASLt's is its own, and the emulated device's is in double.
bool same_again(const Tensor& y, bool fused) { return !fused || (y.device() == Device::cpu && size_of(y.dtype) > 2); }

std::shared_ptr<const Recipe> recipe_of(Activation activation, const Tensor& z) {
  return std::make_shared<Recipe>(Recipe{z.device(), [activation, z = keep(z)] {
                                           const Tensor y = Tensor::like(*z);
                                           activate(activation, y, *z);
                                           return y;
                                         }});
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

// dz, and dbias on the way. `z` and `y` are empty where the slope does not read them.
Tensor pre_activation_gradient(Activation activation, const Tensor& dy, const Tensor& z, const Tensor& y,
                               const Want& dbias) {
  const Tensor dz = activation == Activation::none ? dy : Tensor::like(dy);
  if (activation == Activation::none && !dbias) return dz;
  trace_moves(static_cast<double>(dy.bytes()) * (activation == Activation::none ? 1 : 3));
  with_dtype(dy.dtype, [&]<class T>() {
    const T* const input = z ? z.ptr<T>() : nullptr;
    const T* const output = y ? y.ptr<T>() : nullptr;
    const auto sum = [&](const auto& into) {
      if (activation == Activation::none)
        sum_columns(dy.device(), dy.rows(), dy.cols(), into, Element<T>{dy.ptr<T>(), dy.cols()});
      with_activation(activation, [&]<class F>() {
        sum_columns(dy.device(), dy.rows(), dy.cols(), into,
                    PreActivationGradient<T, F>{dy.ptr<T>(), input, output, dz.ptr<T>(), dy.cols()});
      });
    };
    if (dbias)
      dbias.into_sums<T>(sum);
    else
      sum(Into<T>{nullptr});
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
  const Needs needs = needs_of(activation);
  Tensor y = Tensor::like(x, x.shape.with_last(weight.shape[0]));
  const Tensor z = needs.input ? Tensor::like(y) : Tensor();  // else the activation runs in place
  const Tensor mask = relu_mask(y, bias, activation);
  Gemm g = product(x, Transposed{weight});
  const bool fused = fuse(g, bias, activation, z, mask);
  if (result_needed({&x, &weight, &bias})) {
    const Tensor& target = z && !fused ? z : y;
    g.c = target.data.begin();
    gemm(x.device(), g);
    if (!fused && activation != Activation::none) {
      activate(activation, y, target);
      trace_moves(2.0 * static_cast<double>(y.bytes()));
    }
  } else {
    trace_moves(0);
  }

  const Want dx = want(x), dweight = want(weight), dbias = want(bias);
  const std::shared_ptr<Offer> offer = make_offer(activation, y, z, mask, dbias);
  return record(
      "linear", y, {&x, &weight, &bias},
      [activation, offer, dx, dweight, dbias, x = keep(dweight ? x : Tensor()), weight = keep(dx ? weight : Tensor()),
       z = keep(z), y = keep(needs.output ? y : Tensor())](const Tensor& dy) {
        const Activation left = offer && offer->taken ? Activation::none : activation;
        const Tensor dz = pre_activation_gradient(left, dy, *z, *y, offer && offer->summed ? want({}) : dbias);
        if (dx) gemm_into(dx, product(dz, *weight));
        if (dweight) gemm_into(dweight, product(Transposed{dz}, *x));
        if (ExampleSquares* const squares = ExampleSquares::current(); squares && dweight)
          squares->add_layer(dz, *x, static_cast<bool>(dbias));
      },
      offer, remaking() && z && same_again(y, fused) ? recipe_of(activation, z) : nullptr);
}

}  // namespace tapedeck
