// A multi-layer perceptron, as one would draw it:
//   features → [linear → activation → dropout] × hidden layers → linear → outputs
#pragma once
#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "apps/models/network.h"
#include "engine/recompute.h"
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
    const int64_t again = recompute_every > 0 && pass.training ? std::min(recompute_first, parts()) : 0;
    for (int64_t first = 0, end; first < again; first = end) {
      end = std::min(first + recompute_every, again);
      h = recompute([this, first, end, pass](const Tensor& from) { return hidden(from, first, end, pass); }, h);
    }
    return layers.back()(hidden(h, again, parts(), pass));
  }
  Tensor hidden(const Tensor& x, int64_t first, int64_t end, const Pass& pass) const {  // layers first … end − 1
    Tensor h = x;
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(end); ++i) h = dropouts[i](layers[i](h), pass);
    return h;
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

  int64_t parts() const override { return std::ssize(dropouts); }
  const char* part_name() const override { return "hidden layers"; }
  int64_t recompute_first = INT64_MAX;  // of the hidden layers, so many are in segments of recompute_every

  // One piece: what goes between layers of one width is one tensor, which two of them keep.
  int64_t pieces() const override { return 1; }
  std::vector<Saving> ways() const override {
    std::vector<Saving> all;
    for (const MadeAgain& what : all_made_again()) all.push_back({text_of(what), flops_again(what)});
    return all;
  }
  void save(int64_t, size_t way) override {
    const MadeAgain what = all_made_again()[way];
    recompute_every = what.every, recompute_first = what.first;
    for (Linear& layer : layers) layer.remade = what.activations;
  }

  std::deque<Linear> layers;  // a deque: its elements never move, and parents know them by address
  std::deque<Dropout> dropouts;

 private:
  struct MadeAgain {           // by backward
    bool activations = false;  // from what went in
    int64_t first = 0, every = 0;
  };
  std::vector<MadeAgain> all_made_again() const {
    std::vector<MadeAgain> all = {{}, {.activations = true}};
    for (int64_t first = 1; first <= parts(); ++first)
      for (int64_t every = 1; every <= first; ++every) all.push_back({false, first, every});
    return all;
  }
  static std::string text_of(const MadeAgain& what) {
    if (what.activations) return "activations";
    if (what.first == 0) return "nothing";
    return text("the first {} hidden layers, {} at a time", what.first, what.every);
  }
  double flops_again(const MadeAgain& what) const {  // of an example
    double flops = 0;
    for (int64_t i = 0; i < parts(); ++i) {
      const Shape& weight = layers[static_cast<size_t>(i)].weight.shape;
      if (what.activations || i < what.first) flops += again_flops * static_cast<double>(weight[0]);
      if (i < what.first) flops += 2 * static_cast<double>(weight.count());
    }
    return flops;
  }
};

}  // namespace tapedeck
