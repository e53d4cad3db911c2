// sgd       w −= rate · g
// momentum  u = μ u + g,                              w −= rate · u                             [Polyak 1964, as in
// Sutskever et al. 2013] adam      m = β₁ m + (1−β₁) g,  v = β₂ v + (1−β₂) g², w −= rate · (m / (1−β₁ᵗ)) / (√(v /
// (1−β₂ᵗ)) + ε)   [Kingma & Ba 2015] adamw     w −= rate · λ w, then as adam [Loshchilov & Hutter 2019] with g = clip /
// max(clip, ‖g‖) · gradient, plus λ w in the first three.
#include "ops/optimizer.h"

#include <cmath>

#include "engine/launch.h"
#include "engine/math.h"
#include "engine/scope.h"

namespace tapedeck {
namespace {

constexpr int64_t chunk = 4096;  // elements that one Block updates or sums

template <class T>
struct SquareChunk {  // one chunk per Block
  const T* x;
  double* sums;
  int64_t count;
  int64_t cols = chunk;
  HD void operator()(Block b, int64_t row) const {
    const T* const in = x + row * chunk;
    const int64_t n = count - row * chunk < chunk ? count - row * chunk : chunk;
    const double sum = double(b.sum(n, [&](int64_t i) { return Acc<T>(in[i]) * Acc<T>(in[i]); }));
    if (b.lane == 0) sums[row] = sum;
  }
};

template <class T>
struct Root {
  const double* sums;
  T* out;
  int64_t cols;
  HD void operator()(Block b, int64_t) const {
    const double total = b.sum(cols, [&](int64_t i) { return sums[i]; });
    if (b.lane == 0) *out = T(sqrt(total));
  }
};

// What every update starts from: the chunk's place, and the factor that clips. `go` is false for a norm that is not
// finite.
template <class T>
struct Update {
  T* w;
  const T* g;
  const T* norm;
  Acc<T> clip, decay, rate;
  int64_t count, decayed;
  HD bool go() const { return Acc<T>(*norm) - Acc<T>(*norm) == Acc<T>(0); }
  HD Acc<T> factor() const { return clip > Acc<T>(0) && Acc<T>(*norm) > clip ? clip / Acc<T>(*norm) : Acc<T>(1); }
  HD int64_t length(int64_t row) const { return count - row * chunk < chunk ? count - row * chunk : chunk; }
};

template <class T>
struct MomentumStep {  // sgd is momentum 0 with no memory of it
  Update<T> u;
  T* memory;
  Acc<T> momentum;
  int64_t cols = chunk;
  HD void operator()(Block b, int64_t row) const {
    if (!u.go()) return;
    const Acc<T> factor = u.factor(), rate = u.rate, decay = u.decay, keep = momentum;
    const int64_t first = row * chunk, decayed = u.decayed - first;
    T* const w = u.w + first;
    const T* const g = u.g + first;
    if (memory) {
      T* const m = memory + first;
      b.each(u.length(row), [&](int64_t i) {
        const Acc<T> value = Acc<T>(w[i]);
        const Acc<T> sum = keep * Acc<T>(m[i]) + (factor * Acc<T>(g[i]) + (i < decayed ? decay : Acc<T>(0)) * value);
        m[i] = T(sum);
        w[i] = T(value - rate * sum);
      });
    } else {
      b.each(u.length(row), [&](int64_t i) {
        const Acc<T> value = Acc<T>(w[i]);
        w[i] = T(value - rate * (factor * Acc<T>(g[i]) + (i < decayed ? decay : Acc<T>(0)) * value));
      });
    }
  }
};

template <class T>
struct AdamStep {
  Update<T> u;
  T* first_moment;
  T* second_moment;
  // 1 − β is made in f64: from a β rounded to f32 it would be off by 1e-5, and so would v. Corrections: 1 / (1−β₁ᵗ), 1
  // / √(1−β₂ᵗ)
  Acc<T> beta1, rest1, beta2, rest2, epsilon, correction1, correction2;
  bool decoupled;
  int64_t cols = chunk;
  HD void operator()(Block b, int64_t row) const {
    if (!u.go()) return;
    const Acc<T> factor = u.factor(), b1 = beta1, r1 = rest1, b2 = beta2, r2 = rest2, eps = epsilon, c2 = correction2,
                 size = u.rate * correction1;
    const Acc<T> shrink = decoupled ? u.rate * u.decay : Acc<T>(0), pull = decoupled ? Acc<T>(0) : u.decay;
    const int64_t first = row * chunk, decayed = u.decayed - first;
    T* const w = u.w + first;
    T* const m = first_moment + first;
    T* const v = second_moment + first;
    const T* const g = u.g + first;
    b.each(u.length(row), [&](int64_t i) {
      const Acc<T> value = Acc<T>(w[i]);
      const Acc<T> slope = factor * Acc<T>(g[i]) + (i < decayed ? pull : Acc<T>(0)) * value;
      const Acc<T> mean = b1 * Acc<T>(m[i]) + r1 * slope;
      const Acc<T> square = b2 * Acc<T>(v[i]) + r2 * slope * slope;
      m[i] = T(mean);
      v[i] = T(square);
      w[i] = T(value - (i < decayed ? shrink : Acc<T>(0)) * value - size * mean / (sqrt(square) * c2 + eps));
    });
  }
};

int64_t chunks(const Tensor& x) { return (x.count() + chunk - 1) / chunk; }

}  // namespace

OptimizerRule::Kind find_optimizer(std::string_view wanted) {
  if (wanted == "sgd") return OptimizerRule::Kind::sgd;
  if (wanted == "momentum") return OptimizerRule::Kind::momentum;
  if (wanted == "adam") return OptimizerRule::Kind::adam;
  if (wanted == "adamw") return OptimizerRule::Kind::adamw;
  throw UsageError(text("optimizer {}: unknown, use sgd, momentum, adam or adamw", wanted));
}

Tensor norm(const Tensor& x) {
  const Tensor sums = Tensor::empty({chunks(x)}, DType::f64, x.device());
  Tensor out = Tensor::like(x, {});
  with_dtype(x.dtype, [&]<class T>() {
    rows(x.device(), chunks(x), SquareChunk<T>{x.ptr<T>(), sums.ptr<double>(), x.count()});
    rows(x.device(), 1, Root<T>{sums.ptr<double>(), out.ptr<T>(), sums.count()});
  });
  return out;
}

Optimizer::Optimizer(ParameterSet& parameters, const OptimizerRule& rule) : parameters_(parameters), rule_(rule) {
  const Scope scope("optimizer");
  const Tensor& values = parameters.values();
  const bool adam = rule.kind == OptimizerRule::Kind::adam || rule.kind == OptimizerRule::Kind::adamw;
  if (adam || rule.kind == OptimizerRule::Kind::momentum)
    first_ = Tensor::full(values.shape, values.dtype, values.device(), 0);
  if (adam) second_ = Tensor::full(values.shape, values.dtype, values.device(), 0);
}

size_t Optimizer::state_bytes() const { return (first_ ? first_.bytes() : 0) + (second_ ? second_.bytes() : 0); }

double Optimizer::step(double rate) {
  parameters_.complete_gradients();
  const Tensor& w = parameters_.values();
  const Tensor& g = parameters_.gradients();
  const Tensor length = norm(g);
  with_dtype(w.dtype, [&]<class T>() {
    const Update<T> update{
        w.ptr<T>(),   g.ptr<T>(), length.ptr<T>(),      Acc<T>(rule_.clip), Acc<T>(rule_.weight_decay),
        Acc<T>(rate), w.count(),  parameters_.decayed()};
    if (second_) {
      const double t = static_cast<double>(steps_ + 1);
      rows(w.device(), chunks(w),
           AdamStep<T>{update, first_.ptr<T>(), second_.ptr<T>(), Acc<T>(rule_.beta1), Acc<T>(1 - rule_.beta1),
                       Acc<T>(rule_.beta2), Acc<T>(1 - rule_.beta2), Acc<T>(rule_.epsilon),
                       Acc<T>(1 / (1 - std::pow(rule_.beta1, t))), Acc<T>(1 / std::sqrt(1 - std::pow(rule_.beta2, t))),
                       rule_.kind == OptimizerRule::Kind::adamw});
    } else {
      rows(w.device(), chunks(w), MomentumStep<T>{update, first_ ? first_.ptr<T>() : nullptr, Acc<T>(rule_.momentum)});
    }
  });
  const double result = length.item();
  if (std::isfinite(result)) ++steps_;
  return result;
}

}  // namespace tapedeck
