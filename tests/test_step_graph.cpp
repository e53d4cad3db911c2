// StepGraph: run, capture, replay; its memory is its own while it lives.
#include "engine/step_graph.h"

#include <functional>
#include <string>
#include <vector>

#include "engine/launch.h"
#include "engine/tensor.h"
#include "ops/ops.h"
#include "tests/gpu.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

namespace tapedeck {
namespace {

Device device = Device::emulated;  // under test

Tensor numbers(double value, int64_t n = 64) { return Tensor::full({n}, DType::f32, device, value); }

// On each device that captures graphs.
void everywhere(const std::function<void()>& test) {
  for (const Device next : test::devices_with_lanes()) {
    device = next;
    INFO(std::string(name(device)));
    test();
  }
  device = Device::emulated;
}

struct Mine {  // a step that counts: total += e^x · count, count += 1, on the device
  Tensor x = numbers(0), total = numbers(0), count = numbers(1);
  int recorded = 0;
  void step() {
    ++recorded;
    const Tensor product = mul(exp(x), count);
    copy(total, add(total, product));
    copy(count, add(count, numbers(1)));
  }
};

TEST_CASE("step graph: the first call runs, the second captures, all later ones replay, with the same results") {
  everywhere([] {
    Mine plain, graphed;
    StepGraph off(device, false), on(device, true);
    for (int i = 0; i < 10; ++i) {
      off.run({}, [&] { plain.step(); });
      on.run({}, [&] { graphed.step(); });
      CHECK_EQ(plain.total.doubles(), graphed.total.doubles());
    }
    CHECK_EQ(plain.recorded, 10);
    CHECK_EQ(graphed.recorded, 2);
    CHECK_EQ(graphed.total.doubles()[0], 55);
    CHECK_EQ(on.graphs(), 1);
    CHECK(on.nodes() > 5);
    CHECK_EQ(off.graphs(), 0);
  });
}

TEST_CASE("step graph: who allocates between replays is not overwritten by the next one") {
  everywhere([] {
    // Fault: the memory of a captured step's intermediate values is given to somebody else, whose numbers each replay
    // then overwrites.
    const auto where = [] { return static_cast<const void*>(numbers(0, 1 << 16).ptr<float>()); };
    Mine mine;
    const void* const free_before = where();
    std::vector<Tensor> others;
    {
      StepGraph graph(device, true);
      for (int i = 0; i < 6; ++i) {
        graph.run({}, [&] { mine.step(); });
        for (int k = 0; k < 4; ++k) others.push_back(numbers(i * 4 + k));
      }
      CHECK_EQ(mine.total.doubles()[0], 21);
      CHECK(where() != free_before);
      for (size_t k = 0; k < others.size(); ++k) CHECK_EQ(others[k].doubles()[63], static_cast<double>(k));
    }
    others.clear();
    CHECK_EQ(where(), free_before);  // the graph is gone: all of its memory can be had again
  });
}

TEST_CASE("step graph: another shape is another graph") {
  everywhere([] {
    StepGraph graph(device, true);
    std::vector<Tensor> sums = {numbers(0, 32), numbers(0, 7)};
    for (int i = 0; i < 5; ++i)
      for (const Tensor& sum : sums) graph.run({sum.count()}, [&] { copy(sum, add(sum, numbers(1, sum.count()))); });
    CHECK_EQ(graph.graphs(), 2);
    for (const Tensor& sum : sums) CHECK_EQ(sum.doubles()[6], 5);
  });
}

TEST_CASE("step graph: graphs share the memory of their intermediate values") {
  everywhere([] {
    // Fault: each shape's graph keeps memory of its own for ever, and a run over many shapes ends out of memory.
    const auto free_place = [] { return numbers(0, 1 << 14).ptr<float>(); };
    StepGraph graph(device, true);
    const Tensor sum = numbers(0, 1 << 14);
    const auto twice = [&](int64_t key) {
      for (int i = 0; i < 2; ++i) graph.run({key}, [&] { copy(sum, add(sum, numbers(1, 1 << 14))); });
    };
    twice(1);
    const float* const after_one = free_place();
    for (int64_t key = 2; key < 6; ++key) twice(key);
    CHECK_EQ(free_place(), after_one);
    CHECK_EQ(sum.doubles()[5], 10);
  });
}

TEST_CASE("step graph: a step that reads a value back is an error, and the graph goes on without") {
  everywhere([] {
    StepGraph graph(device, true);
    const Tensor x = numbers(1);
    double seen = 0;
    const auto reads = [&] { seen = mean(x).item(); };
    graph.run({}, reads);
    CHECK_EQ(seen, 1);
    CHECK_THROWS_WITH_AS(
        graph.run({}, reads),
        doctest::Contains("a step is being captured; return the tensor from the step and read it after replay"), Error);
    CHECK_EQ(mean(x).item(), 1);
    CHECK_EQ(graph.graphs(), 0);
  });
}

TEST_CASE("step graph: the cpu has none") {
  CHECK_THROWS_WITH_AS(StepGraph(Device::cpu, true),
                       "--graph on: cpu has no graphs to capture: use --graph off, or another --device", UsageError);
  StepGraph off(Device::cpu, false);
  int calls = 0;
  for (int i = 0; i < 3; ++i) off.run({}, [&] { ++calls; });
  CHECK_EQ(calls, 3);
}

}  // namespace
}  // namespace tapedeck
