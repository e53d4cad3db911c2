// What the forms of attention share: which keys a query sees, and the checks of their arguments. For files of ops/
// only.
#pragma once
#include "engine/hd.h"
#include "ops/ops.h"

namespace tapedeck {

// A query sees the first so many keys, whatever the mask: query i stands at position first + i among the keys.
struct Visible {
  const int32_t* lengths;  // of each example; null: every key exists
  int64_t keys, first;
  bool causal;

  HD int64_t existing(int64_t example) const {  // keys. A length that is none is cut to 0…keys: no memory is read by it
    if (!lengths) return keys;
    const int64_t length = lengths[example];
    return length < 0 ? 0 : length < keys ? length : keys;
  }
  HD int64_t to(int64_t example, int64_t query) const {  // keys that this query sees, 0 when it does not exist itself
    const int64_t exist = existing(example), position = first + query;
    if (position >= exist) return 0;
    return causal ? position + 1 : exist;
  }
};

// Of T queries that are the keys as well.
inline Visible visible(const AttentionMask& mask, int64_t t) {
  return {mask.lengths ? mask.lengths.ptr<int32_t>() : nullptr, t, 0, mask.causal};
}

struct AttentionSizes {
  int64_t batch, t, heads, head_size;
  int64_t width() const { return heads * head_size; }
};

// Throws Error in the name of `op` unless qkv is [B, T, 3·C] and `heads` divides C.
AttentionSizes attention_sizes(const char* op, const Tensor& qkv, int64_t heads);
// Throws unless the lengths are i32 [batch] on x's device, on the cpu each in 0…t; none are fine.
void check_lengths(const char* op, const AttentionMask& mask, const Tensor& x, int64_t batch, int64_t t);

}  // namespace tapedeck
