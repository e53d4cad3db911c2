// Tensors: values in and out, copies between devices, and what is refused.
#include "engine/tensor.h"

#include <cstdint>
#include <vector>

#include "engine/backend.h"
#include "engine/scope.h"
#include "engine/tape.h"
#include "tests/gpu.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

namespace tapedeck {
namespace {

const std::vector<float> six = {1, -2, 3.5f, 0, 1e-30f, 7};

TEST_CASE("tensor: values go in and come out unchanged, on every device and for every dtype") {
  for (Device device : test::all_devices()) {
    const Tensor t = Tensor::from(six, {2, 3}, device);
    CHECK_EQ(t.device(), device);
    CHECK(t.dtype == DType::f32);
    CHECK_EQ(t.shape.str(), "[2, 3]");
    CHECK_EQ(t.bytes(), 24u);
    CHECK_EQ(t.values<float>(), six);
    CHECK_EQ(t.doubles(), std::vector<double>(six.begin(), six.end()));
    CHECK_EQ(Tensor::from<int32_t>({INT32_MIN, INT32_MAX}, {2}, device).values<int32_t>(),
             std::vector<int32_t>{INT32_MIN, INT32_MAX});
    CHECK_EQ(Tensor::from<double>({1.0 / 3}, {}, device).item(), 1.0 / 3);
    CHECK_EQ(Tensor::from<Half>({Half(0.5f)}, {1}, device).item(), 0.5);
    CHECK_EQ(Tensor::from<Bfloat16>({Bfloat16(-2.0f)}, {1, 1}, device).item(), -2);
    CHECK_EQ(Tensor::from<float>({}, {0, 4}, device).values<float>(), std::vector<float>{});
  }
}

TEST_CASE("tensor: fill and full write every element of every dtype") {
  for (Device device : test::all_devices())
    for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i32})
      for (int64_t n : {0, 1, 255, 256, 257, 40000}) {
        if (device == Device::emulated && n > 1000) continue;
        const Tensor t = Tensor::full({n}, dtype, device, -3);
        CHECK_EQ(t.doubles(), std::vector<double>(static_cast<size_t>(n), -3.0));
        fill(t, 2);
        CHECK_EQ(t.doubles(), std::vector<double>(static_cast<size_t>(n), 2.0));
      }
}

TEST_CASE("tensor: a copy to another device keeps the values, to the same device it is the tensor itself") {
  const Tensor here = Tensor::from(six, {6});
  const Tensor there = here.to(Device::emulated);
  CHECK_EQ(there.device(), Device::emulated);
  CHECK_EQ(there.values<float>(), six);
  CHECK_EQ(there.to(Device::cpu).values<float>(), six);
  CHECK_EQ(here.to(Device::cpu).data.begin(), here.data.begin());
  CHECK_EQ(there.to(Device::emulated).data.begin(), there.data.begin());
  fill(here, 9);
  CHECK_EQ(there.values<float>(), six);
  copy(there, here);
  CHECK_EQ(there.doubles(), std::vector<double>(6, 9.0));
}

TEST_CASE("tensor: fresh memory of the emulated device is NaN") {
  const Tensor t = Tensor::empty({5}, DType::f64, Device::emulated);
  for (double v : t.doubles()) CHECK_NE(v, v);
}

TEST_CASE("tensor: slices share the memory, and copies of a tensor too") {
  const Tensor whole = Tensor::from(six, {6});
  Tensor part = Tensor::empty({2}, DType::f32, Device::cpu);
  CHECK_FALSE(part.data.shared());
  part.data = whole.data.slice(2 * sizeof(float), 2 * sizeof(float));
  CHECK_EQ(part.doubles(), std::vector<double>{3.5, 0});
  fill(part, 8);
  CHECK_EQ(whole.doubles()[2], 8);
  CHECK(whole.data.shared());
  CHECK_THROWS_AS(whole.data.slice(20, 5), Error);
  CHECK_THROWS_AS(whole.data.slice(SIZE_MAX, 2), Error);  // the sum wraps to 1
  CHECK_THROWS_AS(whole.data.slice(8, SIZE_MAX), Error);
}

TEST_CASE("tensor: wrong shapes, types and counts are refused with both sides named") {
  const Tensor t = Tensor::from(six, {2, 3});
  CHECK_THROWS_WITH_AS(Tensor::from(six, {2, 2}), doctest::Contains("6 values do not fill shape [2, 2]"), Error);
  CHECK_THROWS_WITH_AS(t.ptr<double>(), doctest::Contains("asked for f64 but this tensor holds f32"), Error);
  CHECK_THROWS_WITH_AS(t.values<int32_t>(), doctest::Contains("asked for i32"), Error);
  CHECK_THROWS_WITH_AS(t.item(), doctest::Contains("needs a tensor of one element, got [2, 3]"), Error);
  CHECK_THROWS_WITH_AS(copy(t, Tensor::from(six, {3, 2})), doctest::Contains("f32 [3, 2] does not fit into f32 [2, 3]"),
                       Error);
  CHECK_THROWS_AS(copy(t, Tensor::full({2, 3}, DType::f64, Device::cpu, 0)), Error);
  Tensor labels = Tensor::from<int32_t>({1}, {1});
  CHECK_THROWS_WITH_AS(labels.require_gradient(), doctest::Contains("only floating tensors"), Error);
  CHECK_THROWS_WITH_AS(t.gradient(), doctest::Contains("call require_gradient() first"), Error);
  CHECK_THROWS_AS((Shape{1, 1, 1, 1, 1, 1, 1}), Error);
  CHECK_THROWS_WITH_AS(find_device("gpu"), doctest::Contains("use auto, cpu, cuda"), UsageError);
}

TEST_CASE("tensor: one that was never given a value is refused instead of read") {
  // Fault: a default-constructed tensor looks like a scalar and its null pointer is followed.
  const Tensor none;
  CHECK_FALSE(static_cast<bool>(none));
  CHECK_THROWS_WITH_AS(none.item(), doctest::Contains("no memory"), Error);
  CHECK_THROWS_WITH_AS(fill(none, 1), doctest::Contains("no memory"), Error);
  CHECK_THROWS_WITH_AS(copy(Tensor::full({}, DType::f32, Device::cpu, 0), none), doctest::Contains("no memory"), Error);
  CHECK_THROWS_WITH_AS(copy(none, Tensor::full({}, DType::f32, Device::cpu, 0)), doctest::Contains("no memory"), Error);
}

TEST_CASE("tensor: a shape knows its rows and columns") {
  CHECK_EQ((Shape{4, 3, 5}).rows(), 12);
  CHECK_EQ((Shape{4, 3, 5}).cols(), 5);
  CHECK_EQ((Shape{4, 3, 5})[-1], 5);
  CHECK_EQ((Shape{}).rows(), 1);
  CHECK_EQ((Shape{}).cols(), 1);
  CHECK_EQ((Shape{7, 0}).rows(), 7);
  CHECK_EQ((Shape{0, 7}).rows(), 0);
  CHECK_EQ((Shape{7, 0}).count(), 0);
  CHECK((Shape{2, 3}).with_last(9) == Shape{2, 9});
  CHECK_FALSE((Shape{2, 3}) == Shape{3, 2});
  CHECK_FALSE((Shape{6}) == Shape{6, 1});
}

TEST_CASE("tensor: its memory returns to the arena with the last copy") {
  Arena& arena = backend(Device::cpu).arena();
  const int64_t before = arena.use().buffers;
  {
    Tensor a = Tensor::from(six, {6});
    Tensor b = a;
    a = {};
    CHECK_EQ(arena.use().buffers, before + 1);
    CHECK_EQ(b.values<float>(), six);
  }
  CHECK_EQ(arena.use().buffers, before);
}

}  // namespace
}  // namespace tapedeck
