// A KeyValueCache holds the keys and values of the positions that a model has seen, so that the next one costs a
// product with each of them instead of everything anew. For generation: nothing here is recorded on a tape.
#pragma once
#include "engine/tensor.h"

namespace tapedeck {

struct KeyValueCache {
  Tensor kv;           // [B, capacity, 2·C]: in each row C keys, then C values
  int64_t length = 0;  // rows that are filled

  KeyValueCache(int64_t batch, int64_t capacity, int64_t width, DType dtype, Device device)
      : kv(Tensor::empty({batch, capacity, 2 * width}, dtype, device)) {}
  int64_t capacity() const { return kv.shape[1]; }
};

// y [B, n, C] of n new positions, qkv [B, n, 3·C] as in attention(): their keys and values go into the cache, and each
// new query sees all that was there, the new ones before it, and itself. Throws Error when they do not fit, and for a
// qkv that wants a gradient.
Tensor cached_attention(const Tensor& qkv, int64_t heads, KeyValueCache& cache);

}  // namespace tapedeck
