#include "ops/chain.h"

#include "ops/ops.h"
#include "ops/unary.h"

namespace tapedeck {

Tensor cheap_chain_in_one(const Tensor& x) {
  return unary("chain", x, Then<Then<Scale, Relu>, Scale>{{Scale{1.7}, Relu{}}, Scale{0.5}});
}

Tensor cheap_chain_in_three(const Tensor& x) { return scale(relu(scale(x, 1.7)), 0.5); }

Tensor costly_chain_in_one(const Tensor& x) {
  return unary("chain", x, Then<Then<Scale, Silu>, Tanh>{{Scale{1.7}, Silu{}}, Tanh{}});
}

Tensor costly_chain_in_three(const Tensor& x) { return tanh(silu(scale(x, 1.7))); }

}  // namespace tapedeck
