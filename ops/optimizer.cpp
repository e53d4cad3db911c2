// One step, where g is the gradient times min(1, clip / its norm), plus λ w in the first three:
//   sgd       w −= rate · g
//   momentum  u = μ u + g            w −= rate · u                                      [Polyak 1964]
//   adam      m = β₁ m + (1−β₁) g    w −= rate · (m / (1−β₁ᵗ)) / (√(v / (1−β₂ᵗ)) + ε)   [Kingma & Ba 2015]
//             v = β₂ v + (1−β₂) g²
//   adamw     as adam, and w −= rate · λ w                                              [Loshchilov & Hutter 2019]
#include "ops/optimizer.h"

#include <cmath>

#include "engine/launch.h"
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
    if (b.lane == 0) *out = T(std::sqrt(total));
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
  // f(i, weight decay of i) for every element of a chunk. Two loops, because a choice in the loop would cost as much as
  // the update.
  template <class F>
  HD void each(Block b, int64_t row, const F& f) const {
    const int64_t first = row * chunk, last = first + chunk < count ? first + chunk : count;
    const int64_t border = decayed < first ? first : decayed < last ? decayed : last;
    b.each(border - first, [&](int64_t j) { f(first + j, decay); });
    b.each(last - border, [&](int64_t j) { f(border + j, Acc<T>(0)); });
  }
};

template <class T>
struct MomentumStep {  // sgd is momentum 0 with no memory of it
  Update<T> u;
  T* memory;
  Acc<T> momentum;
  int64_t cols = chunk;
  HD void operator()(Block b, int64_t row) const {
    if (!u.go()) return;
    const Acc<T> factor = u.factor(), rate = u.rate, keep = momentum;
    T *const w = u.w, *const m = memory;
    const T* const g = u.g;
    if (m)
      u.each(b, row, [&](int64_t i, Acc<T> decay) {
        const Acc<T> value = Acc<T>(w[i]);
        const Acc<T> sum = keep * Acc<T>(m[i]) + (factor * Acc<T>(g[i]) + decay * value);
        m[i] = T(sum);
        w[i] = T(value - rate * sum);
      });
    else
      u.each(b, row, [&](int64_t i, Acc<T> decay) {
        const Acc<T> value = Acc<T>(w[i]);
        w[i] = T(value - rate * (factor * Acc<T>(g[i]) + decay * value));
      });
  }
};

template <class T>
struct AdamStep {
  Update<T> u;
  T* first_moment;
  T* second_moment;
  // 1 − β is made in f64: from a β rounded to f32 it would be off by 1e-5, and so would v.
  Acc<T> beta1, rest1, beta2, rest2, epsilon;
  Acc<T> correction1, correction2;  // 1 / (1−β₁ᵗ), 1 / √(1−β₂ᵗ)
  Acc<T> shrink, pull;              // of the weight decay: what adamw takes from w, what adam adds to the gradient
  int64_t cols = chunk;
  HD void operator()(Block b, int64_t row) const {
    if (!u.go()) return;
    const AdamStep s = *this;  // a copy of one's own: its values then stay in registers
    const Acc<T> factor = u.factor(), size = u.rate * correction1;
    T *const w = u.w, *const m = first_moment, *const v = second_moment;
    const T* const g = u.g;
    u.each(b, row, [&](int64_t i, Acc<T> decay) {
      const Acc<T> value = Acc<T>(w[i]);
      const Acc<T> slope = factor * Acc<T>(g[i]) + s.pull * decay * value;
      const Acc<T> mean = s.beta1 * Acc<T>(m[i]) + s.rest1 * slope;
      const Acc<T> square = s.beta2 * Acc<T>(v[i]) + s.rest2 * slope * slope;
      m[i] = T(mean);
      v[i] = T(square);
      w[i] = T(value - s.shrink * decay * value - size * mean / (std::sqrt(square) * s.correction2 + s.epsilon));
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

std::vector<std::pair<std::string, Tensor>> Optimizer::moments() const {
  std::vector<std::pair<std::string, Tensor>> all;
  if (first_) all.emplace_back("first", first_);
  if (second_) all.emplace_back("second", second_);
  return all;
}

void Optimizer::restore(const std::vector<std::pair<std::string, Tensor>>& saved, int64_t steps) {
  const auto mine = moments();
  CHECK(saved.size() == mine.size(), "optimizer: {} saved moments, but its rule keeps {}", saved.size(), mine.size());
  for (size_t i = 0; i < mine.size(); ++i) {
    const auto& [name, tensor] = saved[i];
    CHECK(name == mine[i].first && tensor.shape == mine[i].second.shape && tensor.dtype == mine[i].second.dtype,
          "optimizer: saved moment {} is {} {}, but needs {} {}", name, tapedeck::name(tensor.dtype), tensor.shape,
          tapedeck::name(mine[i].second.dtype), mine[i].second.shape);
    copy(mine[i].second, tensor);
  }
  steps_ = steps;
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
      const bool decoupled = rule_.kind == OptimizerRule::Kind::adamw;
      rows(w.device(), chunks(w),
           AdamStep<T>{.u = update,
                       .first_moment = first_.ptr<T>(),
                       .second_moment = second_.ptr<T>(),
                       .beta1 = Acc<T>(rule_.beta1),
                       .rest1 = Acc<T>(1 - rule_.beta1),
                       .beta2 = Acc<T>(rule_.beta2),
                       .rest2 = Acc<T>(1 - rule_.beta2),
                       .epsilon = Acc<T>(rule_.epsilon),
                       .correction1 = Acc<T>(1 / (1 - std::pow(rule_.beta1, t))),
                       .correction2 = Acc<T>(1 / std::sqrt(1 - std::pow(rule_.beta2, t))),
                       .shrink = decoupled ? Acc<T>(rate) : Acc<T>(0),
                       .pull = decoupled ? Acc<T>(0) : Acc<T>(1)});
    } else {
      rows(w.device(), chunks(w), MomentumStep<T>{update, first_ ? first_.ptr<T>() : nullptr, Acc<T>(rule_.momentum)});
    }
  });
  const double result = length.item();
  if (std::isfinite(result)) ++steps_;
  return result;
}

}  // namespace tapedeck
