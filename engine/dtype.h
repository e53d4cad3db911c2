// Number types, and the one place that turns a DType into a C++ type: with_dtype(d, []<class T>() { … }).
#pragma once
#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/check.h"
#include "engine/half.h"

namespace tapedeck {

enum class DType : uint8_t { f64, f32, f16, bf16, i32 };

inline size_t size_of(DType d) {
  switch (d) {
    case DType::f64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    case DType::f16:
    case DType::bf16: return 2;
  }
  return 0;
}
inline const char* name(DType d) {
  switch (d) {
    case DType::f64: return "f64";
    case DType::f32: return "f32";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::i32: return "i32";
  }
  return "?";
}
inline bool is_floating(DType d) { return d != DType::i32; }

// Distance from 1 to the next larger number: the unit that tolerances are stated in.
inline double eps(DType d) {
  switch (d) {
    case DType::f64: return DBL_EPSILON;
    case DType::f32: return FLT_EPSILON;
    case DType::f16: return 0x1p-10;
    case DType::bf16: return 0x1p-7;
    case DType::i32: return 0;
  }
  return 0;
}

template <class T>
inline constexpr DType dtype_of = std::is_same_v<T, double>     ? DType::f64
                                  : std::is_same_v<T, float>    ? DType::f32
                                  : std::is_same_v<T, Half>     ? DType::f16
                                  : std::is_same_v<T, Bfloat16> ? DType::bf16
                                                                : DType::i32;

// What arithmetic on T runs in: double for double, else float.
template <class T>
using Acc = std::conditional_t<std::is_same_v<T, double>, double, float>;

inline DType sums_of(DType d) { return d == DType::f64 ? DType::f64 : DType::f32; }  // of sums and statistics

// Calls f.template operator()<T>() for the floating type that d names; the four are the ones ops compute in.
template <class F>
decltype(auto) with_dtype(DType d, F&& f) {
  switch (d) {
    case DType::f64: return f.template operator()<double>();
    case DType::f16: return f.template operator()<Half>();
    case DType::bf16: return f.template operator()<Bfloat16>();
    case DType::i32: CHECK(false, "this op computes with f64, f32, f16 or bf16, got i32: cast first");
    case DType::f32: break;
  }
  return f.template operator()<float>();
}

}  // namespace tapedeck
