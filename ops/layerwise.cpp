#include "ops/layerwise.h"

#include <cmath>
#include <limits>

#include "engine/launch.h"
#include "ops/optimizer.h"

namespace tapedeck {
namespace {

constexpr int64_t chunk = 4096;  // elements of a piece

// What all of it shares: where a piece lies, and what has been decided about the step.
template <class T>
struct Layers {
  T* w;
  const T* g;
  const StepState* state;
  const int32_t *pieces, *first_piece, *matrix;
  double *sums, *ratios;
  Acc<T> weight_decay;
  HD bool go() const { return state->go != 0; }
  HD int64_t begin(int64_t piece) const { return pieces[3 * piece]; }
  HD int64_t length(int64_t piece) const { return pieces[3 * piece + 1] - pieces[3 * piece]; }
  HD int32_t layer(int64_t piece) const { return pieces[3 * piece + 2]; }
  HD Acc<T> decay(int64_t piece) const { return matrix[layer(piece)] ? weight_decay : Acc<T>(0); }
  HD Acc<T> ratio(int64_t piece) const { return Acc<T>(ratios[layer(piece)]); }
  HD Acc<T> rate() const { return Acc<T>(state->rate); }
  HD Acc<T> factor() const { return Acc<T>(state->factor); }
};

template <class T>
struct LarsSums {  // ‖w‖², ‖g‖² of a piece
  Layers<T> in;
  int64_t cols = chunk;
  HD void operator()(Block b, int64_t piece) const {
    const T* const w = in.w + in.begin(piece);
    const T* const g = in.g + in.begin(piece);
    const Acc<T> factor = in.factor();
    const double ww = double(b.sum(in.length(piece), [&](int64_t i) { return Acc<T>(w[i]) * Acc<T>(w[i]); }));
    const double gg = double(b.sum(in.length(piece), [&](int64_t i) {
      const Acc<T> slope = factor * Acc<T>(g[i]);
      return slope * slope;
    }));
    if (b.lane == 0) in.sums[2 * piece] = ww, in.sums[2 * piece + 1] = gg;
  }
};

template <class T>
struct LambRule {
  T *first_moment, *second_moment;
  Acc<T> beta1, rest1, beta2, rest2, epsilon;
};

template <class T>
HD Acc<T> lamb_direction(const LambRule<T>& rule, const StepState& state, Acc<T> decay, Acc<T> w, Acc<T> m, Acc<T> v) {
  return m * Acc<T>(state.correction1) / (std::sqrt(v) * Acc<T>(state.correction2) + rule.epsilon) + decay * w;
}

template <class T>
struct LambMoments {  // moves them on; ‖w‖², ‖r‖² of a piece
  Layers<T> in;
  LambRule<T> rule;
  int64_t cols = chunk;
  HD void operator()(Block b, int64_t piece) const {
    if (!in.go()) return;
    const int64_t begin = in.begin(piece), length = in.length(piece);
    const T *const w = in.w + begin, *const g = in.g + begin;
    T *const m = rule.first_moment + begin, *const v = rule.second_moment + begin;
    const Acc<T> factor = in.factor(), decay = in.decay(piece);
    b.each(length, [&](int64_t i) {
      const Acc<T> slope = factor * Acc<T>(g[i]);
      m[i] = T(rule.beta1 * Acc<T>(m[i]) + rule.rest1 * slope);
      v[i] = T(rule.beta2 * Acc<T>(v[i]) + rule.rest2 * slope * slope);
    });
    b.sync();
    const double ww = double(b.sum(length, [&](int64_t i) { return Acc<T>(w[i]) * Acc<T>(w[i]); }));
    const double rr = double(b.sum(length, [&](int64_t i) {
      const Acc<T> r = lamb_direction(rule, *in.state, decay, Acc<T>(w[i]), Acc<T>(m[i]), Acc<T>(v[i]));
      return r * r;
    }));
    if (b.lane == 0) in.sums[2 * piece] = ww, in.sums[2 * piece + 1] = rr;
  }
};

template <class T>
struct Trust {  // a Block for each layer
  Layers<T> in;
  double coefficient;  // η of lars; of lamb 1
  double decay_norm;   // λ of lars; of lamb 0
  int64_t cols;        // pieces of the largest layer
  HD void operator()(Block b, int64_t layer) const {
    const int64_t first = in.first_piece[layer], count = in.first_piece[layer + 1] - first;
    const double w = std::sqrt(b.sum(count, [&](int64_t i) { return in.sums[2 * (first + i)]; }));
    const double step = std::sqrt(b.sum(count, [&](int64_t i) { return in.sums[2 * (first + i) + 1]; }));
    if (b.lane == 0)
      in.ratios[layer] = in.matrix[layer] && w > 0 && step > 0 ? coefficient * w / (step + decay_norm * w) : 1;
  }
};

template <class T>
struct LarsStep {
  Layers<T> in;
  T* memory;
  Acc<T> momentum;
  int64_t cols = chunk;
  HD void operator()(Block b, int64_t piece) const {
    if (!in.go()) return;
    const int64_t begin = in.begin(piece);
    T *const w = in.w + begin, *const m = memory + begin;
    const T* const g = in.g + begin;
    const Acc<T> keep = momentum, factor = in.factor(), decay = in.decay(piece), size = in.rate() * in.ratio(piece);
    b.each(in.length(piece), [&](int64_t i) {
      const Acc<T> value = Acc<T>(w[i]);
      const Acc<T> sum = keep * Acc<T>(m[i]) + size * (factor * Acc<T>(g[i]) + decay * value);
      m[i] = T(sum);
      w[i] = T(value - sum);
    });
  }
};

template <class T>
struct LambStep {
  Layers<T> in;
  LambRule<T> rule;
  int64_t cols = chunk;
  HD void operator()(Block b, int64_t piece) const {
    if (!in.go()) return;
    const int64_t begin = in.begin(piece);
    T* const w = in.w + begin;
    const T *const m = rule.first_moment + begin, *const v = rule.second_moment + begin;
    const Acc<T> decay = in.decay(piece), size = in.rate() * in.ratio(piece);
    b.each(in.length(piece), [&](int64_t i) {
      const Acc<T> value = Acc<T>(w[i]);
      w[i] = T(value - size * lamb_direction(rule, *in.state, decay, value, Acc<T>(m[i]), Acc<T>(v[i])));
    });
  }
};

}  // namespace

Layerwise::Layerwise(const ParameterSet& parameters) : parameters_(parameters) {
  const Tensor& values = parameters.values();
  CHECK(values.count() <= std::numeric_limits<int32_t>::max(), "layerwise: {} numbers are more than 2^31",
        values.count());
  std::vector<int32_t> pieces, first, matrix;
  for (const Parameter* p : parameters.all()) {
    const auto bytes = static_cast<const char*>(p->master.data.begin()) - static_cast<const char*>(values.data.begin());
    const int64_t begin = bytes / static_cast<int64_t>(size_of(values.dtype)), end = begin + p->shape.count();
    first.push_back(static_cast<int32_t>(pieces.size() / 3));
    matrix.push_back(p->shape.rank() >= 2);
    for (int64_t at = begin; at < end; at += chunk)
      for (const int64_t number : {at, std::min(at + chunk, end), std::ssize(matrix) - 1})
        pieces.push_back(static_cast<int32_t>(number));
  }
  const int64_t count = std::ssize(pieces) / 3;
  first.push_back(static_cast<int32_t>(count));
  const Device device = values.device();
  pieces_ = Tensor::from(pieces, {count, 3}, device);
  first_piece_ = Tensor::from(first, {std::ssize(first)}, device);
  matrix_ = Tensor::from(matrix, {std::ssize(matrix)}, device);
  sums_ = Tensor::full({count, 2}, DType::f64, device, 0);
  ratios_ = Tensor::full({std::ssize(matrix)}, DType::f64, device, 1);
}

void Layerwise::advance(const OptimizerRule& rule, const StepState* state, const Tensor& first,
                        const Tensor& second) const {
  const Tensor& values = parameters_.values();
  const Device device = values.device();
  const int64_t pieces = pieces_.shape[0], layers = matrix_.count();
  with_dtype(values.dtype, [&]<class T>() {
    const Layers<T> in{values.ptr<T>(),
                       parameters_.gradients().ptr<T>(),
                       state,
                       pieces_.ptr<int32_t>(),
                       first_piece_.ptr<int32_t>(),
                       matrix_.ptr<int32_t>(),
                       sums_.ptr<double>(),
                       ratios_.ptr<double>(),
                       Acc<T>(rule.weight_decay)};
    if (rule.kind == OptimizerRule::Kind::lars) {
      rows(device, pieces, LarsSums<T>{in});
      rows(device, layers, Trust<T>{in, rule.trust, rule.weight_decay, pieces});
      rows(device, pieces, LarsStep<T>{in, first.ptr<T>(), Acc<T>(rule.momentum)});
      return;
    }
    const LambRule<T> lamb{.first_moment = first.ptr<T>(),
                           .second_moment = second.ptr<T>(),
                           .beta1 = Acc<T>(rule.beta1),
                           .rest1 = Acc<T>(1 - rule.beta1),
                           .beta2 = Acc<T>(rule.beta2),
                           .rest2 = Acc<T>(1 - rule.beta2),
                           .epsilon = Acc<T>(rule.epsilon)};
    rows(device, pieces, LambMoments<T>{in, lamb});
    rows(device, layers, Trust<T>{in, 1, 0, pieces});
    rows(device, pieces, LambStep<T>{in, lamb});
  });
}

}  // namespace tapedeck
