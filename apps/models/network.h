// Network: what the program asks of a model, whichever kind it is.
#pragma once
#include <string>

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
};

}  // namespace tapedeck
