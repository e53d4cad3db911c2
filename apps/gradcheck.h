// Gradient check: what backward computed against central differences of the loss,
//   ∂L/∂w ≈ (L(w + h) − L(w − h)) / 2h,   h = ∛eps · max(1, |w|)      [Press et al., Numerical Recipes, §5.7]
// The differences are always taken in f64, by a twin of the model with the same weights, so that a check of f32
// gradients is as sharp as f32 itself.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ops/parameter.h"

namespace tapedeck {

struct GradientCheck {  // of one parameter
  std::string path;
  int64_t checked = 0;          // entries compared: a random sample and the one with the largest gradient
  double largest_gradient = 0;  // of the entries compared
  double error = 0;             // largest |backward − differences| over the larger of the two's largest gradients
  double tolerance = 0;         // of error
  std::string verdict;          // "ok", "wrong", "not finite", or "nothing to compare": all gradients are about 0
};

// Compares the gradients that have gathered in `parameters` with differences of `loss`, which reads the values of
// `twin` (the same model in f64). `terms` is the length of the longest sum behind a gradient: rounding grows with its
// root. Values of the twin are as before afterwards.
std::vector<GradientCheck> check_gradients(const ParameterSet& parameters, const ParameterSet& twin,
                                           const std::function<double()>& loss, int64_t samples, double terms);

bool all_ok(const std::vector<GradientCheck>& checks);  // false for an empty list

}  // namespace tapedeck
