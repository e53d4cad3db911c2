// Which gradients fp16 would lose: of dL/dy of each layer the share of numbers that are not 0, but round to 0 in fp16
// (up to 2^-25, half of its smallest), with and without the loss scale. Measured in f32, where none of them is lost, on
// one batch and the weights of now.
#pragma once
#include <string>

#include "apps/experiment.h"
#include "engine/tape_watch.h"

namespace tapedeck {

struct LayerUnderflow {
  std::string layer;  // "gpt.block0.grow linear"
  int64_t numbers = 0, lost = 0, lost_scaled = 0;
};

// Counts them in what a backward pass of this thread hands from layer to layer, while it lives.
class UnderflowWatch : public TapeWatch {
 public:
  explicit UnderflowWatch(double scale) : scale_(scale) {}
  void gradient(const char* op, const std::string& where, const Tensor& dy) override;
  std::vector<LayerUnderflow> layers;

 private:
  double scale_;
};

// In the order in which the backward pass reaches the layers. Of a layer that is reached several times: all of them.
std::vector<LayerUnderflow> underflow(const Config& config, Device device, const Learner& learner, double scale);
std::string underflow_text(const std::vector<LayerUnderflow>& layers, double scale);
Json underflow_json(const std::vector<LayerUnderflow>& layers, double scale);

}  // namespace tapedeck
