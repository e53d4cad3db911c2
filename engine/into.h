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

struct SameValue {  // for map(): a copy, a sum with what is there, or a rounding to another type, as Into says
  template <class A>
  HD A operator()(A x) const {
    return x;
  }
};

}  // namespace tapedeck
