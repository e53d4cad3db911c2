// A multi-layer perceptron, as one would draw it:  features → [linear → activation → dropout] × hidden → linear →
// classes
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "ops/layers.h"

namespace tapedeck {

struct Mlp : Module {
  Mlp(int64_t features, const std::vector<int64_t>& hidden, int64_t outputs, Activation activation, double p)
      : Module("mlp") {
    int64_t width = features;
    for (size_t i = 0; i < hidden.size(); ++i) {
      layers.emplace_back(*this, "hidden" + std::to_string(i), width, hidden[i], activation);
      dropouts.emplace_back(*this, "dropout" + std::to_string(i), p);
      width = hidden[i];
    }
    layers.emplace_back(*this, "out", width, outputs);
  }

  Tensor operator()(const Tensor& x, const Pass& pass) const {  // [N, features] -> [N, outputs]
    const Scope scope(name());
    Tensor h = x;
    for (size_t i = 0; i < dropouts.size(); ++i) h = dropouts[i](layers[i](h), pass);
    return layers.back()(h);
  }

  std::deque<Linear> layers;  // a deque: its elements never move, and parents know them by address
  std::deque<Dropout> dropouts;
};

}  // namespace tapedeck
