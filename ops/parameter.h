// Parameter: one trained tensor of a model. ParameterSet: all of them as one flat array of values and one of gradients,
// so that zeroing, the norm and the optimizer are one loop each.
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
  Tensor value;  // a segment of the flat array once a ParameterSet exists; a leaf that wants a gradient
};

class ParameterSet {
 public:
  // Lays out and initialises every parameter of the model. Values are a pure function of seed, path and index. Matrices
  // come first, then vectors (biases, gains), so that weight decay is a prefix of the array.
  ParameterSet(Module& model, Device device, DType dtype, uint64_t seed);

  const std::vector<Parameter*>& all() const { return all_; }
  int64_t count() const { return count_; }  // trained numbers, without padding
  const Tensor& values() const { return values_; }
  const Tensor& gradients() const { return gradients_; }
  int64_t decayed() const { return decayed_; }  // values()[0 … decayed) belong to matrices

  void forget_gradients();           // the next backward pass writes instead of adding
  void complete_gradients();         // zeros where no backward pass wrote: a frozen or unused part
  std::string broken_value() const;  // path of the first parameter with a value that is not finite, or ""
  const std::string& path_at(int64_t place) const;  // of the parameter whose number lies there in the flat array

 private:
  std::vector<Parameter*> all_;
  Tensor values_, gradients_;
  int64_t count_ = 0, decayed_ = 0;
};

}  // namespace tapedeck
