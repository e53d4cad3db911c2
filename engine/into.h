// Into: where a kernel's results go. It writes to fresh memory, and adds to what is there otherwise (a gradient's later
// writers).
#pragma once
#include <cstdint>

#include "engine/dtype.h"
#include "engine/hd.h"

namespace tapedeck {

template <class T>
struct Into {
  T* p;
  bool add = false;
  HD void operator()(int64_t i, Acc<T> value) const { p[i] = T(add ? Acc<T>(p[i]) + value : value); }
};

}  // namespace tapedeck
