// StepBench: the training step of an MLP (784, --hidden, 10) on a fixed resident batch of made-up examples: forward,
// backward, gradient norm, update. What bench step, batch, precision and threads time, round by round.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/experiment.h"
#include "apps/models/mlp.h"
#include "engine/step_graph.h"

namespace tapedeck {

class StepBench {
 public:
  static constexpr int64_t features = 784, classes = 10;
  static constexpr int warmup_steps = 5;

  StepBench(const Config& config, int64_t batch, Device device, bool graph);  // in config's precision

  void round(int64_t steps);  // warms up, then times each; throws Diverged or Error where the steps do not train

  double flops() const { return model_.training_flops() * static_cast<double>(batch); }
  const StepGraph& graph() const { return *graph_; }
  const std::vector<double>& milliseconds() const { return milliseconds_; }
  const std::vector<double>& round_medians() const { return round_medians_; }
  size_t saved_bytes() const { return saved_bytes_; }  // of activations, that the tape of a step keeps
  std::vector<double> outputs() const;                 // of the model as it is now

  const int64_t batch;

 private:
  void ask();

  const Device device_;
  Mlp model_;
  ParameterSet parameters_;
  ScalerRule scaler_;
  Optimizer optimizer_;
  double rate_;
  Tensor x_, labels_;
  int64_t asked_ = 0;
  size_t saved_bytes_ = 0;
  std::vector<double> milliseconds_, round_medians_;
  std::optional<StepGraph> graph_;  // dies before what its graph uses
};

// Of a round, unless --steps says otherwise: fewer where they take longer, on the emulated device 2.
int64_t timed_steps(const Config& config, int64_t batch, Device device);

// "mlp 784-512-512-10, adam, fp32 on cpu, 2 threads; 5 warm-up steps before each round left out", a line.
std::string mlp_text(const Config& config, Device device);

}  // namespace tapedeck
