// Layers: modules with parameters, each with the rule its parameters begin by.
#pragma once
#include <cmath>
#include <string>

#include "engine/random.h"
#include "ops/module.h"

namespace tapedeck {

// y = activation(x · weightᵀ + bias)
// weight begins uniform with variance gain² / in, which keeps the size of activations from layer to layer [He et al.
// 2015, arXiv:1502.01852]: gain² = 2 before relu and its smooth kin, which drop half of what passes, else 1. bias is 0.
struct Linear : Module {
  Linear(Module& parent, const std::string& name, int64_t in, int64_t out, Activation activation = Activation::none)
      : Module(parent, name),
        weight(*this, "weight", {out, in},
               {Init::Kind::uniform, std::sqrt(3 * gain2(activation) / static_cast<double>(in))}),
        bias(*this, "bias", {out}, {}),
        activation(activation) {}

  Tensor operator()(const Tensor& x) const {
    const Scope scope(name());
    return linear(x, weight.value, bias.value, activation);
  }
  static double gain2(Activation a) {
    return a == Activation::none || a == Activation::tanh || a == Activation::sigmoid ? 1 : 2;
  }

  Parameter weight, bias;
  Activation activation;
};

struct Dropout : Module {
  Dropout(Module& parent, const std::string& name, double p) : Module(parent, name), p(p) {}

  Tensor operator()(const Tensor& x, const Pass& pass) const {
    if (!pass.training || p == 0) return x;
    const Scope scope(name());
    return dropout(x, p, {pass.seed, pass.step, site_of(path()), pass.batches});
  }

  double p;
};

}  // namespace tapedeck
