// Layers: modules with parameters, each with the rule its parameters begin by.
#pragma once
#include <cmath>
#include <string>

#include "engine/random.h"
#include "engine/recompute.h"
#include "ops/module.h"

namespace tapedeck {

// y = activation(x · weightᵀ + bias)
// weight begins uniform with variance gain² / in, which keeps the size of activations from layer to layer [He et al.
// 2015, arXiv:1502.01852]: gain² = 2 before relu and its smooth kin, which drop half of what passes, else 1; or as the
// caller says. bias is 0.
struct Linear : Module {
  Linear(Module& parent, const std::string& name, int64_t in, int64_t out, Activation activation, const Init& weight)
      : Module(parent, name),
        weight(*this, "weight", {out, in}, weight),
        bias(*this, "bias", {out}, {}),
        activation(activation) {}
  Linear(Module& parent, const std::string& name, int64_t in, int64_t out, Activation activation = Activation::none)
      : Linear(parent, name, in, out, activation,
               {Init::Kind::uniform, std::sqrt(3 * gain2(activation) / static_cast<double>(in))}) {}

  Tensor operator()(const Tensor& x) const {
    const Scope scope(name());
    const Remaking recipe(remade);
    return linear(x, weight.value, bias.value, activation);
  }
  static double gain2(Activation a) {
    return a == Activation::none || a == Activation::tanh || a == Activation::sigmoid ? 1 : 2;
  }

  Parameter weight, bias;
  Activation activation;
  bool remade = false;  // backward makes the output again from what went into the activation
};

// Rows of mean 0 and variance 1, times gain, plus bias; at first gain is 1 and bias 0. With a branch: its sum with x
// too.
struct LayerNorm : Module {
  LayerNorm(Module& parent, const std::string& name, int64_t width)
      : Module(parent, name),
        gain(*this, "gain", {width}, {Init::Kind::constant, 1}),
        bias(*this, "bias", {width}, {}) {}

  Tensor operator()(const Tensor& x) const {
    const Scope scope(name());
    const Remaking recipe(remade);
    return layer_norm(x, gain.value, bias.value);
  }
  Residual operator()(const Tensor& x, const Tensor& branch) const {
    const Scope scope(name());
    const Remaking recipe(remade);
    return add_layer_norm(x, branch, gain.value, bias.value);
  }

  Parameter gain, bias;
  bool remade = false;  // backward makes the output again from the input
};

// x / √(mean x²), times gain, which is 1 at first.
struct RmsNorm : Module {
  RmsNorm(Module& parent, const std::string& name, int64_t width)
      : Module(parent, name), gain(*this, "gain", {width}, {Init::Kind::constant, 1}) {}

  Tensor operator()(const Tensor& x) const {
    const Scope scope(name());
    return rms_norm(x, gain.value);
  }
  Residual operator()(const Tensor& x, const Tensor& branch) const {
    const Scope scope(name());
    return add_rms_norm(x, branch, gain.value);
  }

  Parameter gain;
};

// A row of width numbers for each id 0…count−1, at first normal(0, 0.02) [Radford et al. 2019, GPT-2]. With positions,
// the embedding of places: the row of the token's place, which counts from `first`, is added.
struct Embedding : Module {
  Embedding(Module& parent, const std::string& name, int64_t count, int64_t width)
      : Module(parent, name), table(*this, "table", {count, width}, {Init::Kind::normal, 0.02}) {}

  Tensor operator()(const Tensor& ids) const {
    const Scope scope(name());
    return embedding(ids, table.value);
  }
  Tensor operator()(const Tensor& ids, const Embedding& positions, int64_t first = 0) const {
    const Scope scope(name());
    return embedding(ids, table.value, positions.table.value, first);
  }

  Parameter table;
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
