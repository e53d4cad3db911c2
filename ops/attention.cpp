#include "ops/attention.h"

namespace tapedeck {

AttentionSizes attention_sizes(const char* op, const Tensor& qkv, int64_t heads) {
  CHECK(qkv.rank() == 3, "{}: takes qkv [B, T, 3·C], got {}", op, qkv.shape);
  CHECK(heads >= 1, "{}: needs at least one head, got {}", op, heads);
  CHECK(qkv.cols() > 0 && qkv.cols() % (3 * heads) == 0,
        "{}: qkv {} ends in {}, which is no multiple of 3 · {} heads: each head has equally many queries, keys and "
        "values",
        op, qkv.shape, qkv.cols(), heads);
  return {qkv.shape[0], qkv.shape[1], heads, qkv.cols() / 3 / heads};
}

void check_lengths(const char* op, const AttentionMask& mask, const Tensor& x, int64_t batch, int64_t t) {
  const Tensor& lengths = mask.lengths;
  if (!lengths) return;
  CHECK(lengths.rank() == 1 && lengths.count() == batch, "{}: needs a length for each of {} examples, got {}", op,
        batch, lengths.shape);
  CHECK(lengths.dtype == DType::i32, "{}: lengths must be i32, got {}", op, name(lengths.dtype));
  CHECK(lengths.device() == x.device(), "{}: the numbers are on {} and the lengths on {}: move one with to()", op,
        name(x.device()), name(lengths.device()));
  if (lengths.device() != Device::cpu) return;
  const int32_t* const length = lengths.ptr<int32_t>();
  for (int64_t b = 0; b < batch; ++b)
    CHECK(length[b] >= 0 && length[b] <= t, "{}: example {} has length {}, but there are {} positions (0…{})", op, b,
          length[b], t, t);
}

}  // namespace tapedeck
