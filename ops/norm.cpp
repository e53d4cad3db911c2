// layer_norm   y = n ∘ gain + bias,  n = (x − mean) · r,  r = 1 / √(Σ (x − mean)² / C + eps)    [Ba et al. 2016, §3]
// rms_norm     the same with mean = 0 and no bias                                   [Zhang & Sennrich 2019, eq. 4]
//
//   dx = r · (g − mean g − n · mean(g ∘ n)),  g = dy ∘ gain; rms_norm's without mean g
//   dgain = Σ dy ∘ n,  dbias = Σ dy over the rows
//
// The variance is made in a second pass, from differences: mean x² − (mean x)² has no digits left where the mean is
// large. Kept are x and each row's mean and r, from which backward makes n again.
//
// add_layer_norm and add_rms_norm are two nodes, made in one pass over memory: the sum, whose gradient goes to both of
// its terms, and the norm, which adds its own to the sum's.
#include "engine/column_sums.h"
#include "engine/math.h"
#include "engine/recompute.h"
#include "engine/trace.h"
#include "ops/ops.h"

namespace tapedeck {
namespace {

// out = (in − middle) · by · gain + bias, a row. A null bias is 0.
template <class T>
HD void scale_row(Block b, const T* in, T* out, const T* gain, const T* bias, Acc<T> middle, Acc<T> by, int64_t cols) {
  if (bias)
    b.each(cols, [=](int64_t j) { out[j] = T((Acc<T>(in[j]) - middle) * by * Acc<T>(gain[j]) + Acc<T>(bias[j])); });
  else
    b.each(cols, [=](int64_t j) { out[j] = T((Acc<T>(in[j]) - middle) * by * Acc<T>(gain[j])); });
}

template <class T, bool centered>
struct NormForward {  // one row per Block
  const T* x;
  const T* branch;       // null: there is none, and x itself is normalised
  const T *gain, *bias;  // bias null: 0
  T *sum, *y;
  Acc<T>*mean, *r;
  double eps;
  int64_t cols;
  HD void operator()(Block b, int64_t row) const {
    const int64_t at = row * cols;
    const T* in = x + at;
    if (branch) {
      b.each(cols, [&](int64_t j) { sum[at + j] = T(Acc<T>(x[at + j]) + Acc<T>(branch[at + j])); });
      b.sync();
      in = sum + at;
    }
    normalise(b, in, y + at, row);
  }
  HD void normalise(Block b, const T* in, T* out, int64_t row) const {
    const Acc<T> share = Acc<T>(1) / Acc<T>(cols);
    const Acc<T> origin = Acc<T>(in[0]);  // a row of equal numbers thus has exactly their mean
    const Acc<T> middle =
        centered ? origin + b.sum(cols, [&](int64_t j) { return Acc<T>(in[j]) - origin; }) * share : Acc<T>(0);
    const Acc<T> squares = b.sum(cols, [&](int64_t j) {
      const Acc<T> difference = Acc<T>(in[j]) - middle;
      return difference * difference;
    });
    const Acc<T> by = rsqrt(squares * share + Acc<T>(eps));
    scale_row(b, in, out, gain, bias, middle, by, cols);
    if (b.lane != 0) return;
    if (centered) mean[row] = middle;
    r[row] = by;
  }
};

template <class T, bool centered>
struct NormAgain {  // y of a row, from x and what the row's mean and r were
  const T* x;
  const Acc<T>*mean, *r;
  const T *gain, *bias;
  T* y;
  int64_t cols;
  HD void operator()(Block b, int64_t row) const {
    const Acc<T> middle = centered ? mean[row] : Acc<T>(0), by = r[row];
    scale_row(b, x + row * cols, y + row * cols, gain, bias, middle, by, cols);
  }
};

template <class T, bool centered>
struct Normalised {  // n, element by element
  const T* x;
  const Acc<T>*mean, *r;
  int64_t cols;
  HD Acc<T> operator()(int64_t i, int64_t j) const {
    return (Acc<T>(x[i * cols + j]) - (centered ? mean[i] : Acc<T>(0))) * r[i];
  }
};

template <class T, bool centered>
struct NormBackward {
  Normalised<T, centered> n;
  const T *dy, *gain;
  Into<T> dx;
  int64_t cols;
  HD void operator()(Block b, int64_t row) const {
    const int64_t at = row * cols;
    const T *const x = n.x + at, *const slope = dy + at, *const weight = gain;
    const Acc<T> middle = centered ? n.mean[row] : Acc<T>(0), by = n.r[row], share = Acc<T>(1) / Acc<T>(cols);
    const auto g = [&](int64_t j) { return Acc<T>(slope[j]) * Acc<T>(weight[j]); };
    const auto normal = [&](int64_t j) { return (Acc<T>(x[j]) - middle) * by; };
    const Acc<T> mean_g = centered ? b.sum(cols, g) * share : Acc<T>(0);
    const Acc<T> dot = b.sum(cols, [&](int64_t j) { return g(j) * normal(j); }) * share;
    const Into<T> to{dx.p + at, dx.add};
    b.each(cols, [&](int64_t j) { to(j, by * (g(j) - mean_g - normal(j) * dot)); });
  }
};

template <class T, bool centered>
struct GainSlope {  // dy ∘ n
  Normalised<T, centered> n;
  const T* dy;
  HD Acc<T> operator()(int64_t i, int64_t j) const { return Acc<T>(dy[i * n.cols + j]) * n(i, j); }
};

template <class T>
T* pointer(const Tensor& t) {  // null where there is none
  return t ? t.ptr<T>() : nullptr;
}

template <bool centered>
std::shared_ptr<const Recipe> recipe_of(const Tensor& x, const Tensor& gain, const Tensor& bias, const Tensor& mean,
                                        const Tensor& r) {
  return std::make_shared<Recipe>(
      Recipe{x.device(), [x = keep(x), gain = keep(gain), bias = keep(bias), mean = keep(mean), r = keep(r)] {
               const Tensor y = Tensor::like(*x);
               with_dtype(y.dtype, [&]<class T>() {
                 rows(y.device(), y.rows(),
                      NormAgain<T, centered>{x->ptr<T>(), pointer<Acc<T>>(*mean), r->ptr<Acc<T>>(), gain->ptr<T>(),
                                             pointer<T>(*bias), y.ptr<T>(), y.cols()});
               });
               return y;
             }});
}

// y and, with a branch, sum = x + branch first.
template <bool centered>
Residual norm(const char* op, const Tensor& x, const Tensor& branch, const Tensor& gain, const Tensor& bias,
              double eps) {
  CHECK(x.rank() >= 1 && x.cols() > 0, "{}: needs an axis with numbers to normalise, got {}", op, x.shape);
  const auto fits = [&](const Tensor& t, const Shape& shape, const char* what) {
    CHECK(t.shape == shape, "{}: x is {} and {} {}: make it {}", op, x.shape, what, t.shape, shape);
    CHECK(t.dtype == x.dtype, "{}: x is {} and {} {}: cast one of them", op, name(x.dtype), what, name(t.dtype));
    CHECK(t.device() == x.device(), "{}: x is on {} and {} on {}: move one with to()", op, name(x.device()), what,
          name(t.device()));
  };
  if (branch) fits(branch, x.shape, "the branch");
  fits(gain, {x.cols()}, "the gain");
  if (bias) fits(bias, {x.cols()}, "the bias");

  const int64_t n = x.rows(), cols = x.cols();
  Tensor sum = branch ? Tensor::like(x) : x;
  const Tensor y = Tensor::like(x), r = Tensor::empty({n}, sums_of(x.dtype), x.device());
  const Tensor mean = centered ? Tensor::like(r) : Tensor();
  with_dtype(x.dtype, [&]<class T>() {
    using A = Acc<T>;
    rows(x.device(), n,
         NormForward<T, centered>{x.ptr<T>(), pointer<T>(branch), gain.ptr<T>(), pointer<T>(bias), sum.ptr<T>(),
                                  y.ptr<T>(), pointer<A>(mean), r.ptr<A>(), eps, cols});
  });
  if (branch) {
    trace_shares_with_next();
    sum = record("add", sum, {&x, &branch}, [dx = want(x), dbranch = want(branch)](const Tensor& dsum) {
      if (dx) dx.give(dsum);
      if (dbranch) dbranch.give(dsum);
    });
    trace_moves(4.0 * static_cast<double>(x.bytes()));  // x and branch in, sum and y out
  }
  const Want dx = want(sum), dgain = want(gain), dbias = want(bias);
  const Tensor read = dx || dgain ? sum : Tensor();
  const auto backward = [dx, dgain, dbias, x = keep(read), gain = keep(dx ? gain : Tensor()), mean = keep(mean),
                         r = keep(r)](const Tensor& dy) {
    with_dtype(dy.dtype, [&]<class T>() {
      using A = Acc<T>;
      const Device device = dy.device();
      const int64_t n = dy.rows(), cols = dy.cols();
      const Normalised<T, centered> normal{*x ? x->ptr<T>() : nullptr, centered ? mean->ptr<A>() : nullptr, r->ptr<A>(),
                                           cols};
      if (dx) rows(device, n, NormBackward<T, centered>{normal, dy.ptr<T>(), gain->ptr<T>(), dx.into<T>(), cols});
      const auto sum = [&](const Want& want, const auto& value) {
        if (want) want.into_sums<T>([&](const auto& into) { sum_columns(device, n, cols, into, value); });
      };
      sum(dgain, GainSlope<T, centered>{normal, dy.ptr<T>()});
      sum(dbias, Element<T>{dy.ptr<T>(), cols});
    });
  };
  const auto recipe = remaking() && read ? recipe_of<centered>(sum, gain, bias, mean, r) : nullptr;
  return {sum, record(op, y, {&sum, &gain, &bias}, backward, nullptr, recipe)};
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps) {
  return norm<true>("layer_norm", x, {}, gain, bias, eps).normed;
}
Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps) {
  return norm<false>("rms_norm", x, {}, gain, {}, eps).normed;
}
Residual add_layer_norm(const Tensor& x, const Tensor& branch, const Tensor& gain, const Tensor& bias, double eps) {
  return norm<true>("add_layer_norm", x, branch, gain, bias, eps);
}
Residual add_rms_norm(const Tensor& x, const Tensor& branch, const Tensor& gain, double eps) {
  return norm<false>("add_rms_norm", x, branch, gain, {}, eps);
}

}  // namespace tapedeck
