// Pack: neighbouring elements that a lane moves in one instruction. A GPU's widest load or store takes 16 bytes, whose
// address must be a multiple of 16, and elements of 2 or 4 bytes moved one by one need so many more instructions that a
// kernel does not reach the memory's speed.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/hd.h"

// For a loop that must not stay one: the elements of a pack are registers, which have no index.
#if ON_GPU
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif

namespace tapedeck {

template <class T, int width>
struct alignas(sizeof(T) * width) Pack {
  T value[width];
  static HD const Pack& at(const T* p, int64_t i) { return reinterpret_cast<const Pack*>(p)[i]; }
  static HD Pack& at(T* p, int64_t i) { return reinterpret_cast<Pack*>(p)[i]; }
};

// Elements of a pack where several types go side by side: 16 bytes of the widest, so that each one's packs are aligned.
template <class... T>
inline constexpr int pack_width = static_cast<int>(16 / std::max({sizeof(T)...}));

// Whether the memory is one of whole packs: a buffer's is, that of a slice may not be.
template <int width, class T>
bool packed(const T* p) {
  return reinterpret_cast<uintptr_t>(p) % sizeof(Pack<T, width>) == 0;
}

}  // namespace tapedeck
