// Every op of tapedeck: shapes, formula, source. Each is one .cpp file or, for element-wise ones, one functor in
// pointwise.h. Inputs of one op share device and dtype; there is no promotion and no broadcasting beyond a bias.
// [..., C] means any leading extents; labels are i32. Wrong shapes throw Error with both shapes and the fix.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/tape.h"

namespace tapedeck {

// A list reads best as one:
// clang-format off

// Element by element, y has x's shape (pointwise.cpp; formulas and derivatives in pointwise.h)
Tensor add(const Tensor& a, const Tensor& b);      // a + b
Tensor sub(const Tensor& a, const Tensor& b);      // a − b
Tensor mul(const Tensor& a, const Tensor& b);      // a ∘ b
Tensor scale(const Tensor& x, double factor);      // factor · x
Tensor bias(const Tensor& x, const Tensor& b);     // [..., C], [C]: x + b in every row
Tensor relu(const Tensor& x);                      // max(x, 0); slope 0 at 0
Tensor gelu(const Tensor& x);                      // tanh form [Hendrycks & Gimpel 2016]
Tensor gelu_erf(const Tensor& x);                  // x · Φ(x), Φ by erf: the exact form
Tensor silu(const Tensor& x);                      // x · sigmoid(x) [Elfwing et al. 2017]
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);                   // 1 / (1 + e^−x)
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);                       // natural; −inf at 0, NaN below

// Matrix products (matmul.cpp)
Tensor matmul(const Tensor& a, const Tensor& b);   // [M,K],[K,N] -> [M,N]; [B,M,K],[B,K,N] -> [B,M,N]
enum class Activation : uint8_t { none, relu, gelu, gelu_erf, silu, tanh, sigmoid };
Activation find_activation(std::string_view name);  // throws UsageError naming the known ones
// y [..., out] = activation(x · weightᵀ + bias) in one pass: x [..., in], weight [out, in], bias [out] or an empty Tensor
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation = Activation::none);

// Over the last axis; y has x's shape (softmax.cpp)
Tensor softmax(const Tensor& x);                   // e^(x − max) / Σ e^(x − max)
Tensor log_softmax(const Tensor& x);               // x − max − log Σ e^(x − max)

// Over the last axis to mean 0 and variance 1, then · gain + bias; gain [C], bias [C] or an empty Tensor (norm.cpp)
Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps = 1e-5);  // [Ba et al. 2016]
Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps = 1e-5);  // x / √(mean x² + eps) · gain [Zhang & Sennrich 2019]
struct Residual { Tensor sum, normed; };           // x + branch, of one shape, and its norm, in one pass over memory
Residual add_layer_norm(const Tensor& x, const Tensor& branch, const Tensor& gain, const Tensor& bias, double eps = 1e-5);
Residual add_rms_norm(const Tensor& x, const Tensor& branch, const Tensor& gain, double eps = 1e-5);

// [..., T] ids i32, table [V, C] -> [..., T, C]: table[id] and, where positions [P, C] are given, + positions[first + t]
// An id that the table does not have: Error on the cpu, elsewhere a row of NaN (embedding.cpp)
Tensor embedding(const Tensor& ids, const Tensor& table, const Tensor& positions = {}, int64_t first = 0);

// Attention (attention*.cpp; for generation key_value_cache.h). In each row of qkv [B, T, 3·C] lie C queries, C keys, C
// values; head h has the numbers h·d to (h + 1)·d of each, d = C / heads. y [B, T, C] = softmax(q · kᵀ / √d) · v in each
// head [Vaswani et al. 2017].
struct AttentionMask {
  bool causal = true;                              // a position sees itself and those before it
  Tensor lengths = {};                             // i32 [B], 0…T: positions of an example from there on do not exist;
};                                                 // their y is 0 and passes no gradient. Empty: all exist
Tensor attention(const Tensor& qkv, int64_t heads, const AttentionMask& mask);           // fused: no T × T matrix exists
Tensor composed_attention(const Tensor& qkv, int64_t heads, const AttentionMask& mask);  // of matmul and masked_softmax
Tensor attention_weights(const Tensor& qkv, int64_t heads, const AttentionMask& mask);   // [B, heads, T, T]
Tensor masked_softmax(const Tensor& scores, double scale, const AttentionMask& mask);    // [B, heads, T, T]; masked: 0

// Losses, each one number, f32 for 16-bit inputs (cross_entropy.cpp, mse.cpp)
constexpr int32_t ignored_label = -1;              // such a row counts neither in the mean nor in any gradient
Tensor cross_entropy(const Tensor& logits, const Tensor& labels);  // [N, C], [N]: mean −log softmax[label], 0 if all ignored
Tensor mse(const Tensor& x, const Tensor& target);                 // mean (x − target)²; one shape

// Reductions to one number, in a fixed order for any thread count (reduce.cpp)
Tensor sum(const Tensor& x);
Tensor mean(const Tensor& x);

// Moving numbers (move.cpp)
Tensor reshape(const Tensor& x, const Shape& shape);                 // same count, same bytes: shares memory
Tensor permute(const Tensor& x, const std::vector<int>& axes);       // y's axis i is x's axis axes[i]; copies
Tensor concat(const std::vector<Tensor>& parts, int axis);           // along axis; other extents agree
Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t end); // begin ≤ index < end along axis; copies
Tensor cast(const Tensor& x, DType dtype);                           // rounds to nearest even; the gradient is cast back

// Each element is 0 with probability p, else x / (1 − p) [Srivastava et al. 2014]. The mask is a pure function of
// (seed, step, site, index) (dropout.cpp). p is at least 0 and below 1.
struct RandomKey {
  uint64_t seed = 0, step = 0;
  uint32_t site = 0;
  const int64_t* counter = nullptr;                // in the memory of x's device: added to step; read in both passes
};
Tensor dropout(const Tensor& x, double p, const RandomKey& key);

// clang-format on

}  // namespace tapedeck
