// A multi-layer perceptron, as one would draw it:
//   features → [linear → activation → dropout] × hidden layers → linear → outputs
#pragma once
#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "apps/models/network.h"
#include "ops/layers.h"

namespace tapedeck {

struct Mlp : Network {
  // hidden: the width of each hidden layer; p: the share of activations that dropout drops.
  Mlp(int64_t features, const std::vector<int64_t>& hidden, int64_t outputs, Activation activation, double p)
      : Network("mlp") {
    int64_t width = features;
    for (size_t i = 0; i < hidden.size(); ++i) {
      layers.emplace_back(*this, "hidden" + std::to_string(i), width, hidden[i], activation);
      dropouts.emplace_back(*this, "dropout" + std::to_string(i), p);
      width = hidden[i];
    }
    layers.emplace_back(*this, "out", width, outputs);
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const override {  // [N, features] -> [N, outputs]
    const Scope scope(name());
    Tensor h = x;
    for (size_t i = 0; i < dropouts.size(); ++i) h = dropouts[i](layers[i](h), pass);
    return layers.back()(h);
  }

  // Each layer once forward, once for its weight and, but for the first, once for its input.
  double training_flops() const override {
    double flops = 0;
    for (const Linear& layer : layers)
      flops += (&layer == &layers.front() ? 2 : 3) * 2.0 * static_cast<double>(layer.weight.shape.count());
    return flops;
  }
  int64_t widest() const override {
    int64_t most = layers.back().weight.shape[0];
    for (const Linear& layer : layers) most = std::max(most, layer.weight.shape[1]);
    return most;
  }

  std::deque<Linear> layers;  // a deque: its elements never move, and parents know them by address
  std::deque<Dropout> dropouts;
};

}  // namespace tapedeck
