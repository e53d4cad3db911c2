// Optimizers: one pass over the flat arrays of a ParameterSet. The gradient norm is taken first, in a fixed order; then
// one lane decides from it and the loss whether the step goes ahead, at which rate and clipped by how much, and moves
// the loss scale on; the update reads that from the StepState and changes nothing at all where norm or loss is not
// finite.
#pragma once
#include <optional>
#include <string_view>

#include "engine/device_value.h"
#include "ops/layerwise.h"
#include "ops/parameter.h"
#include "ops/schedule.h"
#include "ops/step_state.h"

namespace tapedeck {

struct OptimizerRule {
  enum class Kind : uint8_t { sgd, momentum, adam, adamw, lars, lamb };
  Kind kind = Kind::adam;
  double momentum = 0.9;              // of momentum and lars
  double beta1 = 0.9, beta2 = 0.999;  // of adam, adamw and lamb
  double epsilon = 1e-8;
  double weight_decay = 0;  // of matrices only; adamw shrinks the weights, lamb adds to r, the others to the gradient
  double trust = 0.001;     // η of lars  [You, Gitman & Ginsburg 2017, §4.2]
  double clip = 0;          // the longest gradient norm let through; 0 does not clip
};
OptimizerRule::Kind find_optimizer(std::string_view name);  // throws UsageError naming the known ones

struct StepPlan {  // what is the same for every step
  Schedule schedule;
  bool halt = false;  // a step that is not finite stops all later ones too; with a scale: if it is the last
                      // of scaler.give_up in a row
  ScalerRule scaler = {};
  StepRecord* records = nullptr;  // step s writes records[s % ring], in memory that the device sees; null: no records
  int64_t ring = 1;
};

class Optimizer {
 public:
  Optimizer(ParameterSet& parameters, const OptimizerRule& rule);  // with a StepState of its own
  Optimizer(ParameterSet& parameters, const OptimizerRule& rule, const DeviceValue<StepState>& state);  // shares it

  // The end of a step: takes the gradients and the loss that have gathered, and changes the values. All of it is only
  // asked of the device, nothing waits for it. Where norm or loss is not finite no value, moment or count of updates
  // changes.
  void advance(const StepPlan& plan);

  // The same at this learning rate, and waits for it: returns the norm before clipping. A step that is not finite
  // changes nothing and leaves it to the caller what to do.
  double step(double rate);

  const DeviceValue<StepState>& state() const { return state_; }
  int64_t steps() const { return state_.read().updates; }  // those that changed the values; waits for the device

  // What a resumed run needs besides the StepState: "first" and "second" where there are such moments. restore() takes
  // both back; it throws Error when the moments are not the ones that this rule keeps.
  std::vector<std::pair<std::string, Tensor>> moments() const;
  void restore(const std::vector<std::pair<std::string, Tensor>>& moments, const StepState& state);

  size_t state_bytes() const;  // of moments

 private:
  ParameterSet& parameters_;
  OptimizerRule rule_;
  Tensor first_, second_;               // momentum or first moment; second moment
  std::optional<Layerwise> layerwise_;  // of lars and lamb
  DeviceValue<StepState> state_;
};

}  // namespace tapedeck
