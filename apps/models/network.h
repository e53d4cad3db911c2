// Network: what the program asks of a model, whichever kind it is.
#pragma once
#include <string>
#include <vector>

#include "ops/module.h"

namespace tapedeck {

struct Network : Module {
  using Module::Module;
  // [N, features] -> [N, outputs], or i32 tokens [N, T] -> [N, T, vocabulary]
  virtual Tensor operator()(const Tensor& x, const Pass& pass) const = 0;
  // Multiplications and additions of the matrix products of one example's step, forward and backward.
  virtual double training_flops() const = 0;
  virtual std::string flops_formula() const { return "the matrix products, forward and backward"; }  // for people
  virtual int64_t widest() const = 0;  // numbers that the longest sum of a forward pass adds up

  // What training does not keep but makes again in backward (engine/recompute.h). Parts are blocks or hidden layers,
  // one behind the other, and so many at a time keep only what goes in. 0: everything is kept.
  virtual int64_t parts() const = 0;
  virtual const char* part_name() const = 0;  // of several: "blocks"
  int64_t recompute_every = 0;

  // Finer: each of so many equal pieces saves memory in a way of its own, which is a place in ways(). The first saves
  // nothing.
  struct Saving {
    std::string what;  // is made again, for people
    double flops;      // that it takes, for a piece and an example; see again_flops
  };
  virtual int64_t pieces() const = 0;
  virtual std::vector<Saving> ways() const = 0;
  virtual void save(int64_t piece, size_t way) = 0;
  // An element that is made again without a product counts as so many FLOP: its 8 bytes are read and written in the
  // time of 50 (one core, 10 GB/s, 60 GFLOP/s) to 250 (a GPU, 2 TB/s, 60 TFLOP/s); `tapedeck info` shows a machine's
  // peaks.
  static constexpr double again_flops = 100;
};

}  // namespace tapedeck
