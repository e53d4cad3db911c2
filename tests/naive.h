// The oracle of every op: the slow, obvious version. Plain loops over double, nothing shared with ops/ or the engine
// but Shape, so that a fault cannot hide in both. Same names and arguments as in ops/ops.h, with Array for Tensor.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ops/ops.h"

namespace tapedeck::naive {

struct Array {
  Shape shape;
  std::vector<double> values;

  explicit Array(const Shape& s = {}) : shape(s), values(static_cast<size_t>(s.count())) {}
  Array(const Shape& s, std::vector<double> v) : shape(s), values(std::move(v)) {}
  double& operator[](int64_t i) { return values[static_cast<size_t>(i)]; }
  double operator[](int64_t i) const { return values[static_cast<size_t>(i)]; }
  int64_t count() const { return static_cast<int64_t>(values.size()); }
};

// ---- Element by element --------------------------------------------------------------------------------------------
template <class F>
Array each(Array x, const F& f) {
  for (double& value : x.values) value = f(value);
  return x;
}
template <class F>
Array each(Array a, const Array& b, const F& f) {
  for (int64_t i = 0; i < a.count(); ++i) a[i] = f(a[i], b[i]);
  return a;
}

inline double gelu_of(double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
inline double gelu_erf_of(double x) { return x / 2 * std::erfc(-x / std::sqrt(2)); }
inline double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

inline Array add(const Array& a, const Array& b) {
  return each(a, b, [](double x, double y) { return x + y; });
}
inline Array sub(const Array& a, const Array& b) {
  return each(a, b, [](double x, double y) { return x - y; });
}
inline Array mul(const Array& a, const Array& b) {
  return each(a, b, [](double x, double y) { return x * y; });
}
inline Array scale(const Array& x, double factor) {
  return each(x, [=](double v) { return factor * v; });
}
inline Array relu(const Array& x) {
  return each(x, [](double v) { return std::max(v, 0.0); });
}
inline Array gelu(const Array& x) { return each(x, gelu_of); }
inline Array gelu_erf(const Array& x) { return each(x, gelu_erf_of); }
inline Array silu(const Array& x) {
  return each(x, [](double v) { return v * sigmoid_of(v); });
}
inline Array tanh(const Array& x) {
  return each(x, [](double v) { return std::tanh(v); });
}
inline Array sigmoid(const Array& x) { return each(x, sigmoid_of); }
inline Array exp(const Array& x) {
  return each(x, [](double v) { return std::exp(v); });
}
inline Array log(const Array& x) {
  return each(x, [](double v) { return std::log(v); });
}

inline Array bias(Array x, const Array& b) {
  for (int64_t i = 0; i < x.count(); ++i) x[i] += b[i % b.count()];
  return x;
}

// ---- Matrix products -----------------------------------------------------------------------------------------------
inline Array matmul(const Array& a, const Array& b) {  // [M,K],[K,N] or [B,M,K],[B,K,N]
  const int64_t m = a.shape[-2], k = a.shape[-1], n = b.shape[-1];
  Array y(a.shape.with_last(n));
  for (int64_t row = 0; row < a.shape.rows(); ++row)  // rows of all matrices of the batch, one below the other
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < k; ++l) y[row * n + j] += a[row * k + l] * b[(row / m * k + l) * n + j];
  return y;
}

inline Array activate(const Array& x, Activation activation) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return relu(x);
    case Activation::gelu: return gelu(x);
    case Activation::gelu_erf: return gelu_erf(x);
    case Activation::silu: return silu(x);
    case Activation::tanh: return tanh(x);
    case Activation::sigmoid: return sigmoid(x);
  }
  return x;
}

inline Array linear(const Array& x, const Array& weight, const Array& b, Activation activation) {
  const int64_t in = weight.shape[1], out = weight.shape[0];
  Array y(x.shape.with_last(out));
  for (int64_t row = 0; row < x.shape.rows(); ++row)
    for (int64_t j = 0; j < out; ++j) {
      y[row * out + j] = b.shape.rank() == 1 ? b[j] : 0;
      for (int64_t l = 0; l < in; ++l) y[row * out + j] += x[row * in + l] * weight[j * in + l];
    }
  return activate(y, activation);
}

// ---- Over the last axis --------------------------------------------------------------------------------------------
inline Array log_softmax(Array x) {
  const int64_t cols = x.shape.cols();
  for (int64_t first = 0; first < x.count(); first += cols) {
    double top = -INFINITY, total = 0;
    for (int64_t j = 0; j < cols; ++j) top = std::max(top, x[first + j]);
    for (int64_t j = 0; j < cols; ++j) total += std::exp(x[first + j] - top);
    for (int64_t j = 0; j < cols; ++j) x[first + j] -= top + std::log(total);
  }
  return x;
}
inline Array softmax(const Array& x) { return exp(log_softmax(x)); }

inline Array scaled_rows(const Array& x, const Array& gain, const Array& b, double eps, bool centered) {
  const int64_t cols = x.shape.cols();
  Array y(x.shape);
  for (int64_t first = 0; first < x.count(); first += cols) {
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < cols && centered; ++j) mean += x[first + j] / static_cast<double>(cols);
    for (int64_t j = 0; j < cols; ++j) variance += std::pow(x[first + j] - mean, 2) / static_cast<double>(cols);
    for (int64_t j = 0; j < cols; ++j) {
      y[first + j] = (x[first + j] - mean) / std::sqrt(variance + eps) * gain[j];
      if (b.shape.rank() == 1) y[first + j] += b[j];
    }
  }
  return y;
}
inline Array layer_norm(const Array& x, const Array& gain, const Array& b, double eps) {
  return scaled_rows(x, gain, b, eps, true);
}
inline Array rms_norm(const Array& x, const Array& gain, double eps) {
  return scaled_rows(x, gain, Array(), eps, false);
}

// ---- Tokens --------------------------------------------------------------------------------------------------------
inline Array embedding(const Array& ids, const Array& table, const Array& positions, int64_t first) {
  const int64_t cols = table.shape[1], tokens = ids.shape.cols();
  Shape shape = ids.shape;
  shape.push(cols);
  Array y(shape);
  for (int64_t i = 0; i < ids.count(); ++i)
    for (int64_t j = 0; j < cols; ++j) {
      y[i * cols + j] = table[static_cast<int64_t>(ids[i]) * cols + j];
      if (positions.shape.rank() == 2) y[i * cols + j] += positions[(first + i % tokens) * cols + j];
    }
  return y;
}

// ---- Attention -----------------------------------------------------------------------------------------------------
// Of query i of an example: how many keys it sees. lengths of rank 0: every position exists.
inline int64_t keys_seen(const Array& lengths, bool causal, int64_t example, int64_t i, int64_t t) {
  const int64_t exist = lengths.shape.rank() == 0 ? t : static_cast<int64_t>(lengths[example]);
  if (i >= exist) return 0;
  return causal ? i + 1 : exist;
}

inline Array masked_softmax(Array x, const Array& lengths, double scale, bool causal) {
  const int64_t t = x.shape[3], rows_of_example = x.shape[1] * t;
  for (int64_t row = 0; row < x.shape.rows(); ++row) {
    const int64_t n = keys_seen(lengths, causal, row / rows_of_example, row % t, t);
    double top = -INFINITY, total = 0;
    for (int64_t j = 0; j < n; ++j) top = std::max(top, scale * x[row * t + j]);
    for (int64_t j = 0; j < n; ++j) total += std::exp(scale * x[row * t + j] - top);
    for (int64_t j = 0; j < t; ++j) x[row * t + j] = j < n ? std::exp(scale * x[row * t + j] - top) / total : 0;
  }
  return x;
}

inline Array attention_weights(const Array& qkv, const Array& lengths, int64_t heads, bool causal) {
  const int64_t batch = qkv.shape[0], t = qkv.shape[1], c = qkv.shape[2] / 3, d = c / heads;
  Array scores({batch, heads, t, t});
  for (int64_t b = 0, to = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < t; ++i)
        for (int64_t j = 0; j < t; ++j, ++to)
          for (int64_t l = h * d; l < h * d + d; ++l)
            scores[to] += qkv[(b * t + i) * 3 * c + l] * qkv[(b * t + j) * 3 * c + c + l];
  return masked_softmax(scores, lengths, 1 / std::sqrt(static_cast<double>(d)), causal);
}

inline Array attention(const Array& qkv, const Array& lengths, int64_t heads, bool causal) {
  const int64_t batch = qkv.shape[0], t = qkv.shape[1], c = qkv.shape[2] / 3, d = c / heads;
  const Array weights = attention_weights(qkv, lengths, heads, causal);
  Array y({batch, t, c});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < t; ++i)
      for (int64_t l = 0; l < c; ++l)
        for (int64_t j = 0; j < t; ++j)
          y[(b * t + i) * c + l] +=
              weights[((b * heads + l / d) * t + i) * t + j] * qkv[(b * t + j) * 3 * c + 2 * c + l];
  return y;
}

// ---- One number ----------------------------------------------------------------------------------------------------
inline Array one_number(double value) { return Array({}, {value}); }

inline Array cross_entropy(const Array& logits, const Array& labels) {
  const Array log_p = log_softmax(logits);
  const int64_t cols = logits.shape.cols();
  double total = 0, counted = 0;
  for (int64_t row = 0; row < labels.count(); ++row) {
    if (labels[row] == ignored_label) continue;
    total -= log_p[row * cols + static_cast<int64_t>(labels[row])];
    counted += 1;
  }
  return one_number(counted == 0 ? 0 : total / counted);
}

inline Array sum(const Array& x) {
  double total = 0;
  for (double value : x.values) total += value;
  return one_number(total);
}
inline Array mean(const Array& x) { return one_number(sum(x)[0] / static_cast<double>(x.count())); }
inline Array mse(const Array& x, const Array& target) {
  const Array difference = sub(x, target);
  return mean(mul(difference, difference));
}

// ---- Moving numbers ------------------------------------------------------------------------------------------------
inline Array reshape(const Array& x, const Shape& shape) { return {shape, x.values}; }
inline Array cast(const Array& x, DType) { return x; }  // but for rounding, which the tolerance of the type covers

inline Array permute(const Array& x, const std::vector<int>& axes) {
  Shape shape;
  for (int axis : axes) shape.push(x.shape[axis]);
  Array y(shape);
  for (int64_t i = 0; i < y.count(); ++i) {
    int64_t index[Shape::max_rank] = {}, rest = i, from = 0;  // index is by x's axes
    for (int axis = shape.rank() - 1; axis >= 0; rest /= shape[axis--]) index[axes[axis]] = rest % shape[axis];
    for (int axis = 0; axis < shape.rank(); ++axis) from = from * x.shape[axis] + index[axis];
    y[i] = x[from];
  }
  return y;
}

inline int64_t product(const Shape& shape, int begin, int end) {
  int64_t count = 1;
  for (int axis = begin; axis < end; ++axis) count *= shape[axis];
  return count;
}

inline Array slice(const Array& x, int axis, int64_t begin, int64_t end) {
  Shape shape;
  for (int i = 0; i < x.shape.rank(); ++i) shape.push(i == axis ? end - begin : x.shape[i]);
  const int64_t outer = product(x.shape, 0, axis), inner = product(x.shape, axis + 1, x.shape.rank());
  Array y(shape);
  int64_t to = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t along = begin; along < end; ++along)
      for (int64_t i = 0; i < inner; ++i) y[to++] = x[(o * x.shape[axis] + along) * inner + i];
  return y;
}

inline Array concat(const std::vector<Array>& parts, int axis) {
  int64_t length = 0;
  for (const Array& part : parts) length += part.shape[axis];
  Shape shape;
  for (int i = 0; i < parts[0].shape.rank(); ++i) shape.push(i == axis ? length : parts[0].shape[i]);
  Array y(shape);
  int64_t to = 0;
  for (int64_t o = 0; o < product(shape, 0, axis); ++o)
    for (const Array& part : parts) {
      const int64_t block = product(part.shape, axis, shape.rank());
      for (int64_t i = 0; i < block; ++i) y[to++] = part[o * block + i];
    }
  return y;
}

}  // namespace tapedeck::naive
