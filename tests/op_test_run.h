// One run of one call of an op: make its inputs, call it, send r backward, read everything back.
#pragma once
#include <string>
#include <vector>

#include "engine/backend.h"
#include "engine/emulation/block_engine.h"
#include "tests/op_test.h"

namespace tapedeck::op_test {

struct Setting {  // what is called
  const std::string& op;
  const Case& call;
  DType dtype;
  std::vector<Array> inputs;

  bool floating(size_t input) const;  // such inputs may have gradients
  int64_t largest() const;            // elements of the largest input
  std::string str() const;            // "softmax f32 [3, 129]"
};

struct How {  // how it is called
  Device device = Device::cpu;
  emulation::Order order = emulation::Order::forward;  // of the lanes, on emulated
  unsigned asked = ~0u;                                // bit i: input i wants a gradient
  int uses = 1;                                        // so many calls on the same inputs
  bool same_input = false;                             // every input is the first tensor itself
  bool replayed = false;                               // captured as a graph, which then runs three times
  bool recomputed = false;                             // inside recompute()

  std::string str() const;
};

struct Outcome {
  Array y;
  DType dtype;            // of y
  std::vector<Array> dx;  // gradients of Σ r ∘ y; no values where none was asked for
};
Outcome run(const Setting& s, const How& how);

// The numbers of an input, rounded to its type. The same seed gives the same ones.
Array make(const Input& input, int64_t ragged_extent, DType tested, uint32_t seed);
DType type_of(const Input& input, DType tested);
Tensor to_tensor(const Array& array, DType dtype, Device device);

Array projections(const Shape& shape);  // r: 1/2 … 3/2 of either sign, exact in every type

}  // namespace tapedeck::op_test
