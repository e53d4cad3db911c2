// A model of two weights that begin at 0, with its optimizer; the test makes up gradient and loss of each step.
#pragma once
#include <vector>

#include "ops/layers.h"
#include "ops/optimizer.h"

namespace tapedeck::test {

struct TwoWeights {
  TwoWeights(Device device, const OptimizerRule& rule, DType dtype = DType::f64, const StepState& state = {})
      : parameters(two, device, dtype, 1),
        optimizer(parameters, rule, DeviceValue<StepState>(device, state)),
        records(device) {}

  // The gradient (a, b) as it gathers, scale and all.
  void step(double a, double b, double loss, StepPlan plan) {
    const GradSlot& slot = *two.weight.value.grad;
    parameters.forget_gradients();
    copy(slot.sum, cast(Tensor::from(std::vector<double>{a, b}, {2}), slot.sum.dtype));
    two.weight.value.grad->fresh = false;
    end_batch(optimizer.state().ptr(), Tensor::full({}, DType::f64, slot.sum.device(), loss), 1, 1);
    plan.records = records.ptr()->of;
    plan.ring = 3;
    optimizer.advance(plan);
  }
  StepState state() const { return optimizer.state().read(); }
  StepRecord record(int64_t step) const { return records.read().of[step % 3]; }
  std::vector<double> weights() const { return two.weight.master.doubles(); }
  std::vector<std::vector<double>> moments() const {
    std::vector<std::vector<double>> all;
    for (const auto& [name, moment] : optimizer.moments()) all.push_back(moment.doubles());
    return all;
  }

  struct Two : Module {
    Two() : Module("two"), weight(*this, "weight", {2}, {}) {}
    Parameter weight;
  };
  struct Ring {
    StepRecord of[3];
  };
  Two two;
  ParameterSet parameters;
  Optimizer optimizer;
  DeviceValue<Ring> records;
};

}  // namespace tapedeck::test
