// Numbers to compute on where none are given: a function of place and index, the same on every machine and device.
#pragma once
#include <string_view>

#include "engine/tensor.h"

namespace tapedeck {

// Uniform from −1 to 1, rounded to dtype.
Tensor made_up(std::string_view place, const Shape& shape, Device device, DType dtype);

}  // namespace tapedeck
