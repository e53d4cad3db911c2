// One step, where g is the gradient times min(1, clip / its norm), plus λ w in the first three:
//   sgd       w −= rate · g
//   momentum  u = μ u + g            w −= rate · u                                      [Polyak 1964]
//   adam      m = β₁ m + (1−β₁) g    w −= rate · (m / (1−β₁ᵗ)) / (√(v / (1−β₂ᵗ)) + ε)   [Kingma & Ba 2015]
//             v = β₂ v + (1−β₂) g²
//   adamw     as adam, and w −= rate · λ w                                              [Loshchilov & Hutter 2019]
//   lars, lamb   layerwise.h
#include "ops/optimizer.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/launch.h"
#include "engine/scope.h"
#include "engine/trace.h"

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

// Turns the square sums into the norm, and decides about the step: by one Block, whose first lane does all but the sum.
template <class T>
struct Decide {
  const T* g;
  const double* sums;
  StepState* state;
  StepPlan plan;
  Acc<T> clip;
  double beta1, beta2;
  int64_t count;  // gradients
  int64_t cols;
  HD static bool finite(double x) { return x - x == 0; }
  HD int64_t first_broken() const {  // walks through the one chunk whose sum says so
    for (int64_t c = 0; c < cols; ++c)
      if (!finite(sums[c]))
        for (int64_t i = c * chunk; i < count && i < (c + 1) * chunk; ++i)
          if (!finite(double(Acc<T>(g[i])))) return i;
    return -1;
  }
  HD void operator()(Block b, int64_t) const {
    const double total = b.sum(cols, [&](int64_t i) { return sums[i]; });
    if (b.lane != 0) return;
    StepState s = *state;
    const float scale = s.scaler.scale;
    const T norm = T(std::sqrt(total) / double(scale));  // clipping looks at the true one: unscale, then clip
    s.norm = double(norm);
    s.rate = plan.schedule.rate(s.updates);
    s.factor = (clip > Acc<T>(0) && Acc<T>(norm) > clip ? double(clip / Acc<T>(norm)) : 1) / double(scale);
    const double t = double(s.updates + 1);
    s.correction1 = 1 / (1 - std::pow(beta1, t));
    s.correction2 = 1 / std::sqrt(1 - std::pow(beta2, t));
    const bool overflow = !finite(s.norm) || !finite(s.loss);
    s.go = !s.halted && !overflow;
    if (!s.halted) s.scaler = next(s.scaler, plan.scaler, overflow);
    if (plan.halt && overflow && s.scaler.in_a_row >= plan.scaler.patience()) s.halted = 1;
    if (plan.records) {
      const int64_t broken = finite(s.norm) ? -1 : first_broken();
      plan.records[s.step % plan.ring] = {
          s.step, s.loss,   s.norm,   s.rate, broken,
          s.go,   s.halted, s.scaler, scale,  s.squares / (double(scale) * double(scale))};
    }
    s.step += 1;
    s.updates += s.go;
    s.loss = 0, s.squares = 0;
    *state = s;
  }
};

// What every update starts from: the chunk's place, and what has been decided.
template <class T>
struct Update {
  T* w;
  const T* g;
  const StepState* state;
  Acc<T> decay;
  int64_t count, decayed;
  HD bool go() const { return state->go != 0; }
  HD Acc<T> rate() const { return Acc<T>(state->rate); }
  HD Acc<T> factor() const { return Acc<T>(state->factor); }
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
    const Acc<T> factor = u.factor(), rate = u.rate(), keep = momentum;
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
  bool decoupled;  // adamw
  int64_t cols = chunk;
  HD void operator()(Block b, int64_t row) const {
    if (!u.go()) return;
    const AdamStep s = *this;  // a copy of one's own: its values then stay in registers
    const Acc<T> factor = u.factor(), rate = u.rate(), correction2 = Acc<T>(u.state->correction2);
    const Acc<T> size = rate * Acc<T>(u.state->correction1);
    // Of the weight decay: what adamw takes from w, what adam adds to the gradient.
    const Acc<T> shrink = decoupled ? rate : Acc<T>(0), pull = decoupled ? Acc<T>(0) : Acc<T>(1);
    T *const w = u.w, *const m = first_moment, *const v = second_moment;
    const T* const g = u.g;
    u.each(b, row, [&](int64_t i, Acc<T> decay) {
      const Acc<T> value = Acc<T>(w[i]);
      const Acc<T> slope = factor * Acc<T>(g[i]) + pull * decay * value;
      const Acc<T> mean = s.beta1 * Acc<T>(m[i]) + s.rest1 * slope;
      const Acc<T> square = s.beta2 * Acc<T>(v[i]) + s.rest2 * slope * slope;
      m[i] = T(mean);
      v[i] = T(square);
      w[i] = T(value - shrink * decay * value - size * mean / (std::sqrt(square) * correction2 + s.epsilon));
    });
  }
};

const char* name(OptimizerRule::Kind kind) {
  constexpr const char* names[] = {"sgd", "momentum", "adam", "adamw", "lars", "lamb"};
  return names[static_cast<int>(kind)];
}

// The numbers that a part of the step reads and writes, for a profiler.
void trace(const TracedOp& op, const Tensor& x, int passes) {
  if (!op) return;
  op->elements(x.count());
  op->moves(passes * static_cast<double>(x.bytes()));
}

int64_t chunks(const Tensor& x) { return (x.count() + chunk - 1) / chunk; }

}  // namespace

OptimizerRule::Kind find_optimizer(std::string_view wanted) {
  if (wanted == "sgd") return OptimizerRule::Kind::sgd;
  if (wanted == "momentum") return OptimizerRule::Kind::momentum;
  if (wanted == "adam") return OptimizerRule::Kind::adam;
  if (wanted == "adamw") return OptimizerRule::Kind::adamw;
  if (wanted == "lars") return OptimizerRule::Kind::lars;
  if (wanted == "lamb") return OptimizerRule::Kind::lamb;
  throw UsageError(text("optimizer {}: unknown, use sgd, momentum, adam, adamw, lars or lamb", wanted));
}

Optimizer::Optimizer(ParameterSet& parameters, const OptimizerRule& rule)
    : Optimizer(parameters, rule, DeviceValue<StepState>(parameters.values().device())) {}

Optimizer::Optimizer(ParameterSet& parameters, const OptimizerRule& rule, const DeviceValue<StepState>& state)
    : parameters_(parameters), rule_(rule), state_(state) {
  const Scope scope("optimizer");
  const Tensor& values = parameters.values();
  using Kind = OptimizerRule::Kind;
  const auto is_one_of = [&](std::initializer_list<Kind> kinds) {
    return std::find(kinds.begin(), kinds.end(), rule.kind) != kinds.end();
  };
  if (rule.kind != Kind::sgd) first_ = Tensor::full(values.shape, values.dtype, values.device(), 0);
  if (is_one_of({Kind::adam, Kind::adamw, Kind::lamb}))
    second_ = Tensor::full(values.shape, values.dtype, values.device(), 0);
  if (is_one_of({Kind::lars, Kind::lamb})) layerwise_.emplace(parameters);
}

std::vector<std::pair<std::string, Tensor>> Optimizer::moments() const {
  std::vector<std::pair<std::string, Tensor>> all;
  if (first_) all.emplace_back("first", first_);
  if (second_) all.emplace_back("second", second_);
  return all;
}

void Optimizer::restore(const std::vector<std::pair<std::string, Tensor>>& saved, const StepState& state) {
  const auto mine = moments();
  CHECK(saved.size() == mine.size(),
        "optimizer: {} saved moments, but this rule keeps {}: go on with the --optimizer that saved them", saved.size(),
        mine.size());
  for (size_t i = 0; i < mine.size(); ++i) {
    const auto& [name, tensor] = saved[i];
    CHECK(name == mine[i].first && tensor.shape == mine[i].second.shape && tensor.dtype == mine[i].second.dtype,
          "optimizer: saved moment {} is {} {}, but needs {} {}", name, tapedeck::name(tensor.dtype), tensor.shape,
          tapedeck::name(mine[i].second.dtype), mine[i].second.shape);
    copy(mine[i].second, tensor);
  }
  state_.write(state);
}

size_t Optimizer::state_bytes() const { return (first_ ? first_.bytes() : 0) + (second_ ? second_.bytes() : 0); }

void Optimizer::advance(const StepPlan& plan) {
  parameters_.complete_gradients();
  const Tensor& w = parameters_.values();
  const Tensor& g = parameters_.gradients();
  const Tensor sums = Tensor::empty({chunks(g)}, DType::f64, g.device());
  StepState* const state = state_.ptr();
  with_dtype(w.dtype, [&]<class T>() {
    std::optional<TracedOp> traced(std::in_place, "gradient norm");
    trace(*traced, g, 1);
    rows(g.device(), chunks(g), SquareChunk<T>{g.ptr<T>(), sums.ptr<double>(), g.count()});
    rows(g.device(), 1,
         Decide<T>{g.ptr<T>(), sums.ptr<double>(), state, plan, Acc<T>(rule_.clip), rule_.beta1, rule_.beta2, g.count(),
                   sums.count()});
    traced.emplace(name(rule_.kind));
    const int again = layerwise_ ? 2 : 0;                                   // their norms come first
    trace(*traced, w, 3 + again + 2 * static_cast<int>(moments().size()));  // all are read, and but for g written
    if (layerwise_) {
      layerwise_->advance(rule_, state, first_, second_);
      return;
    }
    const Update<T> update{w.ptr<T>(), g.ptr<T>(), state, Acc<T>(rule_.weight_decay), w.count(), parameters_.decayed()};
    if (second_)
      rows(w.device(), chunks(w),
           AdamStep<T>{.u = update,
                       .first_moment = first_.ptr<T>(),
                       .second_moment = second_.ptr<T>(),
                       .beta1 = Acc<T>(rule_.beta1),
                       .rest1 = Acc<T>(1 - rule_.beta1),
                       .beta2 = Acc<T>(rule_.beta2),
                       .rest2 = Acc<T>(1 - rule_.beta2),
                       .epsilon = Acc<T>(rule_.epsilon),
                       .decoupled = rule_.kind == OptimizerRule::Kind::adamw});
    else
      rows(w.device(), chunks(w), MomentumStep<T>{update, first_ ? first_.ptr<T>() : nullptr, Acc<T>(rule_.momentum)});
  });
  parameters_.round_copies();
}

double Optimizer::step(double rate) {
  advance({.schedule = {.base = rate}});
  return state_.read().norm;
}

}  // namespace tapedeck
