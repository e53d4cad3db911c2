// Chains of element-wise formulas, in one pass over memory and in three: what it is worth to fuse them.
#pragma once
#include "engine/tape.h"

namespace tapedeck {

// y = 0.5 · max(1.7 · x, 0): little arithmetic, so that memory sets the pace
Tensor cheap_chain_in_one(const Tensor& x);
Tensor cheap_chain_in_three(const Tensor& x);

// y = tanh(silu(1.7 · x)): two exponentials an element, and the form in one computes what lies between again in backward
Tensor costly_chain_in_one(const Tensor& x);
Tensor costly_chain_in_three(const Tensor& x);

}  // namespace tapedeck
