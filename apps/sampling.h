// Choosing the next token from a model's logits.
#pragma once
#include <cstdint>
#include <span>

namespace tapedeck {

struct Sampling {
  double temperature = 1;  // p ∝ e^(logit / temperature); at 0 the largest logit, of equal ones the first
  int64_t top_k = 0;       // only the k largest logits take part; 0: all. Ties with the k-th take part too
};

// `uniform` in [0, 1) decides. Throws Diverged for logits that are NaN.
int32_t sample(std::span<const double> logits, const Sampling& how, double uniform);

}  // namespace tapedeck
