#include "apps/sampling.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "apps/problem.h"
#include "engine/check.h"

namespace tapedeck {

int32_t sample(std::span<const double> logits, const Sampling& how, double uniform) {
  const int64_t best = argmax(logits);
  if (best < 0) throw Diverged("the model's outputs are NaN, so they name no token: train it again");
  if (how.temperature == 0) return static_cast<int32_t>(best);
  double least = -INFINITY;
  if (how.top_k > 0 && how.top_k < std::ssize(logits)) {
    std::vector<double> sorted(logits.begin(), logits.end());
    const auto kth = sorted.begin() + how.top_k - 1;
    std::nth_element(sorted.begin(), kth, sorted.end(), std::greater<>());
    least = *kth;
  }
  std::vector<double> weights;
  double total = 0;
  for (const double x : logits) {
    weights.push_back(x < least ? 0 : std::exp((x - logits[static_cast<size_t>(best)]) / how.temperature));
    total += weights.back();
  }
  double left = uniform * total;
  for (size_t i = 0; i < weights.size(); ++i)
    if ((left -= weights[i]) < 0) return static_cast<int32_t>(i);
  return static_cast<int32_t>(best);  // rounding has left a last crumb of `left`
}

}  // namespace tapedeck
