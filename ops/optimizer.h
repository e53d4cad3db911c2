// Optimizers: one pass over the flat arrays of a ParameterSet. The gradient norm is taken first, in a fixed order; the
// update reads it on the device, clips by it, and changes nothing at all where it is not finite.
#pragma once
#include <string_view>

#include "ops/parameter.h"

namespace tapedeck {

struct OptimizerRule {
  enum class Kind : uint8_t { sgd, momentum, adam, adamw };
  Kind kind = Kind::adam;
  double momentum = 0.9;              // of momentum
  double beta1 = 0.9, beta2 = 0.999;  // of adam and adamw
  double epsilon = 1e-8;
  double weight_decay = 0;  // of matrices only; adamw shrinks the weights, the others add it to the gradient
  double clip = 0;          // the longest gradient norm let through; 0 does not clip
};
OptimizerRule::Kind find_optimizer(std::string_view name);  // throws UsageError naming the known ones

class Optimizer {
 public:
  Optimizer(ParameterSet& parameters, const OptimizerRule& rule);

  // One step at this learning rate from the gradients that have gathered. Returns their norm before clipping. Where it
  // is not finite no value, moment or count has changed, and the caller decides what to do.
  double step(double rate);

  int64_t steps() const { return steps_; }  // those that changed the values

  // What a resumed run needs: "first" and "second" where there are such moments. restore() takes them back; it throws
  // Error when they are not the ones that this rule keeps.
  std::vector<std::pair<std::string, Tensor>> moments() const;
  void restore(const std::vector<std::pair<std::string, Tensor>>& moments, int64_t steps);

  size_t state_bytes() const;               // of moments

 private:
  ParameterSet& parameters_;
  OptimizerRule rule_;
  Tensor first_, second_;  // momentum or first moment; second moment
  int64_t steps_ = 0;
};

// √Σ x² of a flat tensor, on the device: summed in f64 over chunks in a fixed order, for any thread count.
Tensor norm(const Tensor& x);

}  // namespace tapedeck
