// Layerwise: updates whose length follows each matrix's own norm, for large batches. A trust ratio scales the step of a
// matrix; vectors (biases, gains) have ratio 1 and no weight decay. Where ‖w‖ or what it is divided by is 0, it is 1.
//   lars  u = μ u + rate · ratio · (g + λ w)   w −= u                   ratio = η ‖w‖ / (‖g‖ + λ ‖w‖)
//                                                                       [You, Gitman & Ginsburg 2017, arXiv:1708.03888]
//   lamb  m, v as adam;  r = m̂ / (√v̂ + ε) + λ w   w −= rate · ratio · r   ratio = ‖w‖ / ‖r‖
//                                                                       [You et al. 2020, arXiv:1904.00962]
#pragma once
#include "ops/parameter.h"
#include "ops/step_state.h"

namespace tapedeck {

struct OptimizerRule;

class Layerwise {
 public:
  explicit Layerwise(const ParameterSet& parameters);  // whose flat arrays it updates

  // first, second: the moments; lars has no second. The state says whether the step goes ahead, and at which rate.
  void advance(const OptimizerRule& rule, const StepState* state, const Tensor& first, const Tensor& second) const;

 private:
  const ParameterSet& parameters_;
  // Each parameter is cut into pieces of at most a chunk: i32 [pieces, 3] of begin, end and layer; the first piece of
  // each layer, i32 [layers + 1]; 1 for a matrix, i32 [layers].
  Tensor pieces_, first_piece_, matrix_;
  Tensor sums_, ratios_;  // f64 [pieces, 2] of squares; f64 [layers]
};

}  // namespace tapedeck
