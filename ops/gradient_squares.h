// Σ |cᵢ|² over the parts of a step, for the gradient noise scale (apps/noise_scale.h). cᵢ is what part i adds to the
// gradient of the step, which is the mean over its examples: of n parts of one size, each alone has gradient n·cᵢ. The
// sum gathers in StepState::squares, on the device, still with the loss scale; the end of a step takes that out.
//
// A step can be cut in two ways:
//   ExampleSquares   into examples, where each is a row of every linear layer. Row i adds δᵢ ⊗ xᵢ to dweight and δᵢ to
//                    dbias, so that its part is |δᵢ|² · (|xᵢ|² + 1), summed over the layers, and no example's gradient
//                    is ever made [Goodfellow 2015, arXiv:1510.01799].
//   BatchSquares     into the batches of an accumulation window: |g − before|², of the gradients as they have gathered
//                    and as they were one batch earlier. Costs one more array of gradients.
#pragma once
#include "ops/parameter.h"
#include "ops/step_state.h"

namespace tapedeck {

// While it lives, linear's backward on its thread adds the squares of each row.
class ExampleSquares {
 public:
  ExampleSquares(Device device, int64_t examples);
  ~ExampleSquares();
  ExampleSquares(const ExampleSquares&) = delete;
  ExampleSquares& operator=(const ExampleSquares&) = delete;

  static ExampleSquares* current();  // of this thread; null: nobody asks

  // dz [..., out]: the gradient before the activation, x [..., in]: what went in.
  void add_layer(const Tensor& dz, const Tensor& x, bool bias);
  // state->squares += Σ over the examples. Throws Error unless the layers that were seen have all of the parameters.
  void add_to(StepState* state, int64_t parameters) const;

 private:
  ExampleSquares* const outer_;
  const Tensor sums_;  // f64 [examples]
  int64_t parameters_ = 0;
};

class BatchSquares {
 public:
  explicit BatchSquares(const ParameterSet& parameters);
  // After each batch's backward pass: state->squares += |what it has added|². `first`: of its window.
  void add_to(StepState* state, ParameterSet& parameters, bool first) const;
  void restore(const ParameterSet& parameters) const;  // inside a window, behind a batch
  size_t bytes() const { return before_.bytes(); }

 private:
  const Tensor before_;
};

}  // namespace tapedeck
