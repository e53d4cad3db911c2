// Parameter: one trained tensor of a model. ParameterSet: all of them as one flat array of values and one of gradients,
// so that zeroing, the norm, the optimizer and the rounding of copies are one loop each.
//
// A model that computes in 16 bits is trained in f32: `master` is what the optimizer changes, `value` its rounded copy
// that ops read, and gradients gather in f32 [Micikevicius et al. 2018, §3.1]. An update of a few parts in a thousand
// would be lost by rounding otherwise. In f32 and f64 both are the same memory.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/tensor.h"

namespace tapedeck {

class Module;

struct Init {  // how a parameter begins
  enum class Kind : uint8_t { constant, uniform, normal };
  Kind kind = Kind::constant;
  double size = 0;  // the constant; the bound of uniform(−size, size); the standard deviation of normal(0, size)
};

struct Parameter {
  Parameter(Module& owner, const std::string& name, const Shape& shape, const Init& init);  // joins its owner
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  std::string path;  // "mlp.hidden0.weight"
  Shape shape;
  Init init;
  // Segments of the flat arrays once a ParameterSet exists. `value` is what ops read, a leaf that wants a gradient.
  Tensor master, value;
};

class ParameterSet {
 public:
  // Lays out and initialises every parameter of the model, for ops that compute in dtype. Values are a pure function of
  // seed, path and index. Matrices come first, then vectors (biases, gains), so that weight decay is a prefix of the
  // array.
  ParameterSet(Module& model, Device device, DType dtype, uint64_t seed);

  const std::vector<Parameter*>& all() const { return all_; }
  int64_t count() const { return count_; }          // trained numbers, without padding
  const Tensor& values() const { return values_; }  // the masters
  const Tensor& gradients() const { return gradients_; }
  size_t value_bytes() const { return values_.bytes() + (copies_ ? copies_.bytes() : 0); }
  int64_t decayed() const { return decayed_; }  // values()[0 … decayed) belong to matrices

  void round_copies();               // after every change of the masters
  void forget_gradients();           // the next backward pass writes instead of adding
  void complete_gradients();         // zeros where no backward pass wrote: a frozen or unused part
  std::string broken_value() const;  // path of the first parameter with a value that is not finite, or ""
  const std::string& path_at(int64_t place) const;  // of the parameter whose number lies there in the flat array

 private:
  std::vector<Parameter*> all_;
  Tensor values_, gradients_;
  Tensor copies_;  // of the values in 16 bits, where ops compute in those
  int64_t count_ = 0, decayed_ = 0;
};

}  // namespace tapedeck
