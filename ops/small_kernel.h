// The smallest kernel worth measuring: what is left of its time is what it costs to ask a device for one.
#pragma once
#include "engine/tensor.h"

namespace tapedeck {

void add_one(const Tensor& x);  // x += 1 in one map; f32 of any shape

}  // namespace tapedeck
