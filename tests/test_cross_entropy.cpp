// When cross_entropy may write its gradient over the logits, and what that saves.
#include <vector>

#include "engine/backend.h"
#include "ops/ops.h"
#include "tests/gpu.h"

#undef CHECK  // the engine's, which throws; here it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;

namespace {

constexpr int64_t n = 32, classes = 500;
constexpr size_t logits_bytes = n * classes * sizeof(float);

struct Outcome {
  std::vector<float> gradient;  // of x
  size_t grown;                 // bytes in use at the backward pass's peak, beyond those at its start
};

// loss = cross_entropy(f(x)). `watch` sees the logits, and may keep them.
template <class F, class Watch>
Outcome backward(Device device, const F& f, const Watch& watch) {
  std::vector<float> values(n * classes);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  Tensor x = Tensor::from(values, {n, classes}, device);
  x.require_gradient();
  std::vector<int32_t> labels;
  for (int32_t i = 0; i < n; ++i) labels.push_back(i * 11 % 500);
  const Tensor label = Tensor::from(labels, {n}, device);
  Tape tape;
  Tensor loss;
  {
    const Tensor logits = f(x);
    watch(logits);
    loss = cross_entropy(logits, label);
  }
  Arena& arena = backend(device).arena();
  backend(device).sync();
  arena.reset_peak();
  const size_t before = arena.use().bytes;
  tape.backward(loss);
  return {x.gradient().values<float>(), arena.use().peak_bytes - before};
}

Tensor twice(const Tensor& x) { return scale(x, 2); }  // keeps neither x nor its value

}  // namespace

TEST_CASE("cross_entropy writes its gradient over logits that nobody else has") {
  for (const Device device : test::all_devices()) {
    Tensor kept;
    std::vector<float> before;
    const Outcome alone = backward(device, twice, [](const Tensor&) {});
    const Outcome watched = backward(device, twice, [&](const Tensor& logits) {
      kept = logits;
      before = logits.values<float>();
    });
    CHECK(kept.values<float>() == before);
    CHECK(alone.gradient == watched.gradient);
    CHECK(alone.grown + logits_bytes == watched.grown);
  }
}

TEST_CASE("cross_entropy leaves logits alone that another op reads in its backward pass, or as another shape") {
  for (const Device device : test::all_devices()) {
    const auto exponential = [](const Tensor& x) { return exp(x); };  // whose slope is its value
    Tensor kept;
    const Outcome alone = backward(device, exponential, [](const Tensor&) {});
    const Outcome watched = backward(device, exponential, [&](const Tensor& logits) { kept = logits; });
    CHECK(alone.gradient == watched.gradient);

    std::vector<float> before;
    backward(device, twice, [&](const Tensor& logits) {
      kept = reshape(logits, {n * classes});
      before = kept.values<float>();
    });
    CHECK(kept.values<float>() == before);
  }
}

TEST_CASE("two losses of the same logits add up") {
  for (const Device device : test::all_devices()) {
    std::vector<float> values = {1, 2, 3, -1, 0.5, 2};
    const auto gradient = [&](int losses) {
      Tensor x = Tensor::from(values, {2, 3}, device);
      x.require_gradient();
      const Tensor label = Tensor::from(std::vector<int32_t>{2, 0}, {2}, device);
      Tape tape;
      Tensor loss;
      {
        const Tensor logits = twice(x);
        loss = cross_entropy(logits, label);
        if (losses == 2) loss = add(loss, cross_entropy(logits, label));
      }
      tape.backward(loss);
      return x.gradient().values<float>();
    };
    std::vector<float> doubled = gradient(1);
    for (float& slope : doubled) slope *= 2;
    CHECK(gradient(2) == doubled);
  }
}
