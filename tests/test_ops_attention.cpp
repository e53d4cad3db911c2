// One line for each op of attention, as in test_ops.cpp. The oracle in naive.h is a plain loop over heads, queries and
// keys.
#include "tests/op_test.h"

namespace tapedeck {
using namespace tapedeck::op_test;

namespace {

struct EveryPosition {  // for lengths: none given, all positions exist
  operator Tensor() const { return {}; }
  operator Array() const { return Array(); }
} const every_position;

// The ops with their mask written out: its lengths are a tensor on the device under test.
Tensor composed_attention(const Tensor& qkv, const Tensor& lengths, int64_t heads, bool causal) {
  return tapedeck::composed_attention(qkv, heads, {causal, lengths});
}
Tensor attention_weights(const Tensor& qkv, const Tensor& lengths, int64_t heads, bool causal) {
  return tapedeck::attention_weights(qkv, heads, {causal, lengths});
}
Tensor masked_softmax(const Tensor& scores, const Tensor& lengths, double scale, bool causal) {
  return tapedeck::masked_softmax(scores, scale, {causal, lengths});
}

}  // namespace

OP_TEST(masked_softmax, naive::masked_softmax, input(2, 2, ragged, ragged).range(-9, 9), every_position, 0.5, true)
    .also(input(3, 1, 9, 9), every_position, 1.0, false)
    .also(input(3, 2, 9, 9), labels(3, 10), 1.0, true)
    .also(input(3, 2, 9, 9), labels(3, 10), 1.0, false)
    .also(input(0, 2, 3, 3), every_position, 1.0, true)
    .zero_gradient_at(1)  // softmax of one number is 1
    .rejects("got [2, 3, 3]", input(2, 3, 3), every_position, 1.0, true)
    .rejects("got [2, 1, 3, 4]", input(2, 1, 3, 4), every_position, 1.0, true)
    .rejects("each of 2 examples, got [3]", input(2, 1, 3, 3), labels(3, 4), 1.0, true);

OP_TEST(attention_weights, naive::attention_weights, input(2, ragged, 3 * 6), every_position, 2, true)
    .also(input(3, 5, 3 * 4), labels(3, 6), 1, false)
    .zero_gradient_at(1)
    .rejects("takes qkv [B, T, 3·C], got [5, 6]", input(5, 6), every_position, 1, true);

OP_TEST(composed_attention, naive::attention, input(2, ragged, 3 * 6), every_position, 2, true)
    .also(input(2, ragged, 3 * 8), every_position, 1, false)
    .also(input(3, 9, 3 * 6), labels(3, 10), 3, true)
    .also(input(3, 9, 3 * 6), labels(3, 10), 3, false)
    .also(input(0, 9, 3 * 6), every_position, 3, true)
    .also(input(2, 0, 3 * 6), every_position, 3, true)
    .rejects("takes qkv [B, T, 3·C], got [5, 6]", input(5, 6), every_position, 1, true)
    .rejects("ends in 12, which is no multiple of 3 · 3 heads", input(2, 5, 12), every_position, 3, true)
    .rejects("at least one head, got 0", input(2, 5, 12), every_position, 0, true)
    .rejects("each of 2 examples, got [3]", input(2, 5, 12), labels(3, 5), 2, true)
    .rejects("lengths must be i32, got f32", input(2, 5, 12), input(2), 2, true)
    .rejects("move one with to()", input(2, 5, 12), labels(2, 5).on_another_device(), 2, true);

}  // namespace tapedeck
