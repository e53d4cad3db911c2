// Which gradients fp16 would lose: of dL/dy of each layer the share of numbers that are not 0, but below fp16's
// smallest, with and without the loss scale. Measured in f32, where none of them is lost, on one batch and the weights
// of now.
#pragma once
#include <string>

#include "apps/experiment.h"

namespace tapedeck {

struct LayerUnderflow {
  std::string layer;  // "gpt.block0.grow linear"
  int64_t numbers = 0, lost = 0, lost_scaled = 0;
};

// In the order in which the backward pass reaches the layers. Of a layer that is reached several times: all of them.
std::vector<LayerUnderflow> underflow(const Config& config, Device device, const Learner& learner, double scale);
std::string underflow_text(const std::vector<LayerUnderflow>& layers, double scale);
Json underflow_json(const std::vector<LayerUnderflow>& layers, double scale);

}  // namespace tapedeck
