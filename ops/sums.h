// The type in which numbers of a type are summed up, as Acc<T> is for a T.
#pragma once
#include "engine/dtype.h"

namespace tapedeck {

inline DType sums_of(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

}  // namespace tapedeck
