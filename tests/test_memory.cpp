// Memory over many steps: what a step takes it gives back, whatever the caller keeps of its numbers.
#include <cmath>
#include <vector>

#include "engine/backend.h"
#include "engine/tape.h"
#include "ops/ops.h"
#include "tests/resident.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

namespace tapedeck {
namespace {

using namespace test;

struct Use {
  int64_t buffers;
  size_t bytes, peak_bytes, resident;
};

TEST_CASE("memory: live buffers, bytes and the process are as large after 2,000 steps as after 100") {
  // Fault: a running total of losses, or a stored metric, keeps every step's tape and memory grows with each.
  Arena& arena = backend(Device::cpu).arena();
  const int64_t batch = 64, in = 64, hidden = 64, out = 10;
  const Tensor x = Tensor::full({batch, in}, DType::f32, Device::cpu, 0.5);
  const Tensor labels = Tensor::full({batch}, DType::i32, Device::cpu, 3);
  Tensor w = Tensor::full({hidden, in}, DType::f32, Device::cpu, 0.01);
  Tensor v = Tensor::full({out, hidden}, DType::f32, Device::cpu, 0.01);
  w.require_gradient();
  v.require_gradient();
  Tensor total = Tensor::full({}, DType::f32, Device::cpu, 0);  // as a careless caller sums losses
  std::vector<double> losses;
  losses.reserve(2000);
  std::vector<Use> after;
  for (int step = 1; step <= 2000; ++step) {
    w.grad->fresh = v.grad->fresh = true;
    Tape tape;
    const Tensor loss = cross_entropy(linear(relu(matmul(x, w)), v, {}), labels);
    tape.backward(loss);
    losses.push_back(loss.item());
    {
      NoTape off;
      total = add(total, loss);
    }
    if (step == 100) arena.reset_peak();
    if (step == 100 || step == 1000 || step == 2000)
      after.push_back({arena.use().buffers, arena.use().bytes, arena.use().peak_bytes, resident_bytes()});
  }
  CHECK_GT(total.item(), 1000);  // it was really summed
  CHECK(std::isfinite(losses.back()));
  REQUIRE_EQ(after.size(), 3u);
  for (size_t i : {1, 2}) {
    CHECK_EQ(after[i].buffers, after[0].buffers);
    CHECK_EQ(after[i].bytes, after[0].bytes);
    if (measures_resident)
      CHECK_LE(static_cast<double>(after[i].resident), 1.01 * static_cast<double>(after[0].resident));
  }
  CHECK_EQ(after[1].peak_bytes, after[2].peak_bytes);
}

TEST_CASE("memory: a loss carried from tape to tape keeps neither the tapes nor their values") {
  Arena& arena = backend(Device::cpu).arena();
  Tensor x = Tensor::full({1000}, DType::f64, Device::cpu, 1);
  x.require_gradient();
  Tensor total = Tensor::full({}, DType::f64, Device::cpu, 0);
  std::vector<size_t> bytes;
  for (int step = 0; step < 50; ++step) {
    x.grad->fresh = true;
    Tape tape;
    const Tensor loss = sum(mul(x, x));
    total = add(total, loss);  // recorded, and wants a gradient
    tape.backward(total);
    bytes.push_back(arena.use().bytes);
  }
  CHECK_EQ(total.item(), 50'000);
  CHECK_EQ(x.gradient().doubles()[0], 2);
  CHECK_EQ(bytes[10], bytes[49]);
}

TEST_CASE("memory: every buffer returns when a tape dies, used or not") {
  for (Device device : {Device::cpu, Device::emulated}) {
    Arena& arena = backend(device).arena();
    const auto before = arena.use();
    for (bool backward : {true, false}) {
      Tensor x = Tensor::full({3, 5}, DType::f64, device, 1);
      x.require_gradient();
      Tape tape;
      const Tensor loss = sum(exp(mul(x, add(x, x))));
      if (backward) tape.backward(loss);
    }
    CHECK_EQ(arena.use().buffers, before.buffers);
    CHECK_EQ(arena.use().bytes, before.bytes);
  }
}

}  // namespace
}  // namespace tapedeck
