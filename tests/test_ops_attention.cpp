// One line for each op of attention, as in test_ops.cpp; the sizes around tiles and strips; positions that do not
// exist; and the cache. The oracle in naive.h is a plain loop over heads, queries and keys.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "engine/backend.h"
#include "ops/attention.h"
#include "ops/key_value_cache.h"
#include "tests/gpu.h"
#include "tests/op_test_run.h"

namespace tapedeck {
using namespace tapedeck::op_test;

namespace {

struct EveryPosition {  // for lengths: none given, all positions exist
  operator Tensor() const { return {}; }
  operator Array() const { return Array(); }
} const every_position;

// The ops with their mask written out: its lengths are a tensor on the device under test.
Tensor attention(const Tensor& qkv, const Tensor& lengths, int64_t heads, bool causal) {
  return tapedeck::attention(qkv, heads, {causal, lengths});
}
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

OP_TEST(attention, naive::attention, input(2, ragged, 3 * 6), every_position, 2, true)
    .also(input(2, ragged, 3 * 8), every_position, 1, false)
    .also(input(3, 9, 3 * 6), labels(3, 10), 3, true)
    .also(input(3, 9, 3 * 6), labels(3, 10), 3, false)
    .also(input(1, 70, 3 * 3), every_position, 1, true)  // several strips of queries
    .also(input(0, 9, 3 * 6), every_position, 3, true)
    .also(input(2, 0, 3 * 6), every_position, 3, true)
    .rejects("takes qkv [B, T, 3·C], got [5, 6]", input(5, 6), every_position, 1, true)
    .rejects("ends in 12, which is no multiple of 3 · 3 heads", input(2, 5, 12), every_position, 3, true)
    .rejects("at least one head, got 0", input(2, 5, 12), every_position, 0, true)
    .rejects("each of 2 examples, got [3]", input(2, 5, 12), labels(3, 5), 2, true)
    .rejects("lengths must be i32, got f32", input(2, 5, 12), input(2), 2, true)
    .rejects("move one with to()", input(2, 5, 12), labels(2, 5).on_another_device(), 2, true);

namespace {

using Op = std::function<Tensor(const Tensor& qkv, const Tensor& lengths, int64_t heads, bool causal)>;
const Op fused = [](const Tensor& qkv, const Tensor& lengths, int64_t heads, bool causal) {
  return attention(qkv, lengths, heads, causal);
};
const Op composed = [](const Tensor& qkv, const Tensor& lengths, int64_t heads, bool causal) {
  return composed_attention(qkv, lengths, heads, causal);
};

struct Problem {
  Array qkv, lengths;  // lengths of rank 0: every position exists
  int64_t heads;
  bool causal;
};
Problem problem(int64_t batch, int64_t t, int64_t heads, int64_t head_size, bool causal,
                const std::vector<double>& lengths = {}) {
  const Array qkv = make(input(batch, t, 3 * heads * head_size), 0, DType::f32, 5);
  return {qkv, lengths.empty() ? Array() : Array({batch}, lengths), heads, causal};
}

struct Result {
  Array y, dqkv;  // the gradient of Σ r ∘ y
};
Result run(const Op& op, const Problem& p, Device device, DType dtype) {
  Tensor qkv = to_tensor(p.qkv, dtype, device);
  qkv.require_gradient();
  const Tensor lengths = p.lengths.shape.rank() == 0 ? Tensor() : to_tensor(p.lengths, DType::i32, device);
  Tape tape;
  const Tensor y = op(qkv, lengths, p.heads, p.causal);
  if (y.count() == 0) return {Array(y.shape), Array(p.qkv.shape)};
  tape.backward(sum(mul(y, to_tensor(projections(y.shape), dtype, device))));
  backend(device).arena().check_red_zones();
  return {{y.shape, y.doubles()}, {p.qkv.shape, qkv.gradient().doubles()}};
}

double distance(const Array& a, const Array& b) {  // the largest, in units of b's root mean square; NaN stays NaN
  REQUIRE(a.shape == b.shape);
  double largest = 0, squares = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    const double d = std::abs(a[i] - b[i]);
    largest = d <= largest ? largest : d;
    squares += b[i] * b[i];
  }
  return largest == 0 ? 0 : largest / std::sqrt(squares / static_cast<double>(b.count()));
}

// What op_test.h allows: 4 eps √n, n the numbers of the input.
double allowed(const Problem& p, DType dtype) { return 4 * eps(dtype) * std::sqrt(static_cast<double>(p.qkv.count())); }

void check_against(const Problem& p, const Array& y, const Array& dqkv, const std::vector<DType>& dtypes) {
  for (const Device device : test::all_devices())
    for (const DType dtype : dtypes) {
      CAPTURE(name(device));
      CAPTURE(name(dtype));
      CAPTURE(p.qkv.shape.str());
      CAPTURE(p.causal);
      const Result got = run(fused, p, device, dtype);
      CHECK(distance(got.y, y) <= allowed(p, dtype));
      CHECK(distance(got.dqkv, dqkv) <= allowed(p, dtype));
    }
}
// The fused form against the oracle and, for the gradient, the composed form in f64.
void check_fused(const Problem& p, const std::vector<DType>& dtypes) {
  check_against(p, naive::attention(p.qkv, p.lengths, p.heads, p.causal),
                run(composed, p, Device::cpu, DType::f64).dqkv, dtypes);
}

}  // namespace

TEST_CASE("attention: fused is composed, and the oracle, around the edges of tiles and strips") {
  for (const int64_t t : {1, 2, 31, 33, 65, 129})
    for (const int64_t head_size : {8, 40, 64})
      for (const bool causal : {true, false}) {
        check_fused(problem(1, t, 1, head_size, causal), {DType::f32, DType::f64});
        check_fused(problem(2, t, 1, head_size, causal, {double(t), double(t / 2)}), {DType::f32});
      }
}

TEST_CASE("attention: more keys than backward works on at once") {
  for (const bool causal : {true, false}) {
    check_fused(problem(1, 300, 1, 8, causal), {DType::f32, DType::f64});
    check_fused(problem(2, 270, 1, 8, causal, {270, 257}), {DType::f32});
  }
}

TEST_CASE("attention: the largest head of a device with tiles, and none beyond it") {
  check_fused(problem(1, 35, 1, 128, true), {DType::f32, DType::f64});
  check_fused(problem(1, 35, 2, 128, false), {DType::f32});
  const Tensor qkv = Tensor::full({1, 2, 3 * 129}, DType::f32, Device::emulated, 1);
  CHECK_THROWS_WITH_AS(attention(qkv, every_position, 1, true),
                       doctest::Contains("heads of 129 numbers, but on emulated"), Error);
  CHECK(attention(qkv.to(Device::cpu), every_position, 1, true).doubles().back() == 1);
}

TEST_CASE("attention: a gradient with keys before the first query is refused, not wrong") {
  Attention<float> behind_a_cache{};
  behind_a_cache.visible = {nullptr, 3, 1, true};
  for (const Device device : {Device::cpu, Device::emulated})
    CHECK_THROWS_WITH_AS(attention_backward(device, behind_a_cache, AttentionGradient<float>{}),
                         doctest::Contains("1 keys are before them"), Error);
}

TEST_CASE("attention: in 16 bits the fused form sums in f32, and adds to a gradient that is there") {
  for (const bool causal : {true, false}) {
    const Problem p = problem(2, 70, 2, 8, causal, {70, 33});
    for (const DType dtype : {DType::f16, DType::bf16}) {
      Problem rounded = p;
      rounded.qkv.values = to_tensor(p.qkv, dtype, Device::cpu).doubles();
      const Op twice = [](const Tensor& qkv, const Tensor& lengths, int64_t heads, bool c) {
        return add(attention(qkv, lengths, heads, c), attention(qkv, lengths, heads, c));
      };
      const Result exact = run(composed, rounded, Device::cpu, DType::f64);
      for (const Device device : test::all_devices()) {
        CAPTURE(name(device));
        CAPTURE(name(dtype));
        const Result once = run(fused, rounded, device, dtype), both = run(twice, rounded, device, dtype);
        CHECK(distance(once.y, exact.y) <= 8 * eps(dtype));  // rounded once from sums in f32, dy a few times more
        CHECK(distance(once.dqkv, exact.dqkv) <= 16 * eps(dtype));
        CHECK(distance(both.dqkv, naive::scale(exact.dqkv, 2)) <= 16 * eps(dtype));
      }
    }
  }
}

// Fault: one fully masked query row makes the softmax NaN (−∞ − −∞). That row is not in the loss, but 0 · NaN in the
// backward pass spoils the gradients of the whole batch.
TEST_CASE("attention: a query that sees nothing gives 0 and passes no gradient") {
  for (const Op& op : {fused, composed})
    for (const Device device : test::all_devices()) {
      CAPTURE(name(device));
      const Problem p = problem(1, 4, 2, 3, false, {3});
      Problem shorter = p;  // the same without the row that does not exist
      shorter.qkv = Array({1, 3, 18}, {p.qkv.values.begin(), p.qkv.values.begin() + 3 * 18});
      shorter.lengths = Array();
      const Result got = run(op, p, device, DType::f64), expected = run(op, shorter, device, DType::f64);
      const auto part = [](const Array& x, int64_t begin, int64_t end, const Shape& shape) {
        return Array(shape, {x.values.begin() + begin, x.values.begin() + end});
      };
      CHECK(part(got.y, 3 * 6, 4 * 6, {6}).values == std::vector<double>(6, 0.0));
      CHECK(part(got.dqkv, 3 * 18, 4 * 18, {18}).values == std::vector<double>(18, 0.0));
      CHECK(distance(part(got.y, 0, 3 * 6, {1, 3, 6}), expected.y) <= 1e-14);
      CHECK(distance(part(got.dqkv, 0, 3 * 18, {1, 3, 18}), expected.dqkv) <= 1e-14);
    }
}

// Fault: an example of length 0 gives NaN (0 / 0), in its own row and in what the batch shares.
TEST_CASE("attention: the batch with lengths 5, 0, 3 is the batch with lengths 5, 3") {
  for (const Op& op : {fused, composed})
    for (const Device device : test::all_devices())
      for (const bool causal : {true, false}) {
        CAPTURE(name(device));
        const Problem three = problem(3, 6, 2, 4, causal, {5, 0, 3});
        const int64_t input = 6 * 24, output = 6 * 8;
        const Result got = run(op, three, device, DType::f64);
        for (const int64_t example : {0, 2}) {
          Problem one = three;
          const double* const at = three.qkv.values.data() + example * input;
          one.qkv = Array({1, 6, 24}, {at, at + input});
          one.lengths = Array({1}, {three.lengths[example]});
          const Array y = naive::attention(one.qkv, one.lengths, 2, causal);
          for (int64_t i = 0; i < output; ++i) CHECK(std::abs(got.y[example * output + i] - y[i]) <= 1e-14);
        }
        Problem two = three;
        two.qkv = Array({2, 6, 24});
        std::copy_n(three.qkv.values.begin(), input, two.qkv.values.begin());
        std::copy_n(three.qkv.values.begin() + 2 * input, input, two.qkv.values.begin() + input);
        two.lengths = Array({2}, {5, 3});
        Tensor qkv3 = to_tensor(three.qkv, DType::f64, device), qkv2 = to_tensor(two.qkv, DType::f64, device);
        qkv3.require_gradient(), qkv2.require_gradient();
        {
          Tape tape;
          const Tensor y = op(qkv3, to_tensor(three.lengths, DType::i32, device), 2, causal);
          tape.backward(sum(mul(y, y)));
        }
        {
          Tape tape;
          const Tensor y = op(qkv2, to_tensor(two.lengths, DType::i32, device), 2, causal);
          tape.backward(sum(mul(y, y)));
        }
        std::vector<double> with = qkv3.gradient().doubles();
        CHECK(std::vector<double>(with.begin() + input, with.begin() + 2 * input) == std::vector<double>(input, 0.0));
        with.erase(with.begin() + input, with.begin() + 2 * input);
        CHECK(distance(Array({2 * input}, with), Array({2 * input}, qkv2.gradient().doubles())) <= 1e-14);
      }
}

TEST_CASE("attention: a length that is none is an error on the cpu, and reads no memory elsewhere") {
  const Tensor qkv = Tensor::full({2, 3, 12}, DType::f32, Device::cpu, 1);
  for (const int32_t length : {-1, 4}) {
    const Tensor lengths = Tensor::from<int32_t>({3, length}, {2});
    const std::string message = "example 1 has length " + std::to_string(length) + ", but there are 3 positions";
    for (const Op& op : {fused, composed})
      CHECK_THROWS_WITH_AS(op(qkv, lengths, 2, true), doctest::Contains(message.c_str()), Error);
    const Tensor y = fused(qkv.to(Device::emulated), lengths.to(Device::emulated), 2, true);
    CHECK(y.doubles().back() == (length < 0 ? 0 : 1));
  }
}

// Fault: "fused" attention that keeps the weights of every head for its backward pass, T × T each.
TEST_CASE("attention: twice the positions take twice the memory, not four times") {
  const auto peak = [](Device device, int64_t t) {
    Arena& arena = backend(device).arena();
    const Problem p = problem(1, t, 1, 4, true);
    arena.reset_peak();
    const size_t before = arena.use().bytes;
    run(fused, p, device, DType::f32);
    return static_cast<double>(arena.use().peak_bytes - before);
  };
  CHECK(peak(Device::cpu, 2048) < 2.1 * peak(Device::cpu, 1024));
  CHECK(peak(Device::emulated, 512) < 2.1 * peak(Device::emulated, 256));
}

TEST_CASE("cached_attention: position by position is attention of the whole") {
  for (const Device device : test::all_devices())
    for (const int64_t head_size : {4, 40})
      for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
        CAPTURE(name(device));
        CAPTURE(name(dtype));
        const int64_t batch = 2, t = 37, heads = 2, width = heads * head_size;
        const Problem p = problem(batch, t, heads, head_size, true);
        const Tensor qkv = to_tensor(p.qkv, dtype, device);
        const Array whole({batch, t, width}, attention(qkv, every_position, heads, true).doubles());
        KeyValueCache cache(batch, 40, width, dtype, device);
        std::vector<Tensor> parts;
        for (int64_t next : {3, 30, 31, 32, 33, 34, 35, 36, 37}) {  // a prompt, more of it, then one after another
          parts.push_back(cached_attention(slice(qkv, 1, cache.length, next), heads, cache));
          CHECK(cache.length == next);
        }
        CHECK(distance(Array(whole.shape, concat(parts, 1).doubles()), whole) <= allowed(p, dtype));
        backend(device).arena().check_red_zones();
      }
}

TEST_CASE("cached_attention: refuses what does not fit, and what wants a gradient") {
  KeyValueCache cache(2, 4, 6, DType::f32, Device::cpu);
  const auto refuses = [&](const Tensor& qkv, const char* words) {
    CHECK_THROWS_WITH_AS(cached_attention(qkv, 2, cache), doctest::Contains(words), Error);
    CHECK(cache.length == 0);
  };
  const Tensor good = Tensor::full({2, 3, 18}, DType::f32, Device::cpu, 1);
  refuses(Tensor::full({2, 5, 18}, DType::f32, Device::cpu, 1), "5 new positions do not fit behind 0 of 4");
  refuses(Tensor::full({1, 3, 18}, DType::f32, Device::cpu, 1),
          "[1, 3, 18] but the cache holds keys and values as [2, 4, 12]");
  refuses(cast(good, DType::f64), "f64 on cpu but the cache f32 on cpu");
  refuses(good.to(Device::emulated), "f32 on emulated but the cache f32 on cpu");
  Tensor leaf = Tensor::full({2, 3, 18}, DType::f32, Device::cpu, 1);
  refuses(leaf.require_gradient(), "passes no gradient");
  cached_attention(good, 2, cache);
  CHECK(cache.length == 3);
}

}  // namespace tapedeck
