// The pictures of tapedeck profile: known memory in known layers, and labels that leave each other alone.
#include <cmath>

#include "apps/memory_picture.h"
#include "apps/roofline.h"
#include "engine/backend.h"
#include "ops/ops.h"
#include "tests/program.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;

TEST_CASE("memory picture: layers of a step whose sizes are known, and its peak") {
  const size_t before = backend(Device::cpu).arena().use().bytes;
  double now = 0;
  Tracer tracer(Device::cpu, [&] { return now += 1; });
  const Tensor x = Tensor::full({256, 4}, DType::f32, Device::cpu, 1);  // 4 KiB
  Tensor weight = Tensor::full({4, 4}, DType::f32, Device::cpu, 1);     // 64 bytes
  weight.require_gradient();
  {
    const Tracer::On on(tracer);
    const Range step("step");
    Tape tape;
    Tensor loss;
    {
      const Range range("forward");
      loss = sum(tanh(linear(x, weight, {})));  // keeps x and tanh's output; linear's goes
    }
    const Range range("backward");
    tape.backward(loss);
  }
  tracer.finish();
  const MemoryTimeline t = memory_timeline(
      tracer, {.parameters = 64, .gradients = 0, .optimizer = before, .batch_kept = static_cast<int64_t>(x.bytes())});
  REQUIRE(t.layers.size() == 6);
  const auto layer = [&](const std::string& name) -> const MemoryLayer& {
    for (const MemoryLayer& l : t.layers)
      if (l.name == name) return l;
    throw std::runtime_error("no layer " + name);
  };
  CHECK(layer("parameters").bytes.front() == 64);
  CHECK(layer("optimizer").bytes.front() == static_cast<double>(before));
  CHECK(layer("data").bytes.back() == 4096);
  const std::vector<double>& saved = layer("saved for backward").bytes;
  CHECK(*std::max_element(saved.begin(), saved.end()) == 4096);  // tanh's output, and not x
  CHECK(saved.back() == 0);
  CHECK(layer("workspace").bytes.front() == 0);
  REQUIRE(t.parts.size() == 2);
  CHECK(t.parts[0].name == "forward");
  CHECK(t.parts[1].begin >= t.parts[0].end);
  CHECK(t.savers.size() == 2);
  for (size_t i = 0; i < t.seconds.size(); ++i) CHECK(t.total(i) <= t.total(t.peak));
  const std::string svg = memory_svg(t, "Memory <of> a & b");
  CHECK(svg.starts_with("<svg"));
  CHECK(svg.find("&lt;of&gt; a &amp; b") != svg.npos);
  CHECK(memory_svg({}, "none").find("no step") != std::string::npos);
}

// Fault: memory that an op takes and gives back within itself is in no picture, however large.
TEST_CASE("memory picture: an op's own workspace is the peak while it works, and no longer") {
  double now = 0;
  Tracer tracer(Device::cpu, [&] { return now += 1; });
  const Tensor x = Tensor::full({256}, DType::f32, Device::cpu, 1);
  const size_t before = backend(Device::cpu).arena().use().bytes;
  {
    const Tracer::On on(tracer);
    const Range step("step");
    relu(x);
    {
      const TracedOp op("sorts", Way::forward);
      Tensor::empty({1 << 18}, DType::f32, Device::cpu);
    }
    relu(x);
  }
  tracer.finish();
  const MemoryTimeline t = memory_timeline(tracer, {.parameters = before});
  CHECK(t.layers.back().bytes[t.peak] == 1 << 20);
  CHECK(t.total(t.peak) == static_cast<double>(before + (1 << 20)));
  CHECK(t.at_peak == "sorts forward");
  CHECK(std::count_if(t.layers.back().bytes.begin(), t.layers.back().bytes.end(),
                      [](double bytes) { return bytes > 1024; }) == 1);
  for (const OpRow& row : profile_of(tracer).ops) CHECK(row.peak - before == (row.name == "relu" ? 1024 : 1 << 20));
}

TEST_CASE("roofline: labels cover neither each other nor points, and stay within the frame") {
  std::vector<Label> labels;
  for (int i = 0; i < 24; ++i)  // a crowd in the middle, some at the edges
    labels.push_back({300 + 9.0 * (i % 6), 200 + 7.0 * (i / 6.0), 4, "an op backward " + std::to_string(i)});
  labels.push_back({3, 3, 4, "at a corner"});
  labels.push_back({797, 497, 4, "at another corner"});
  const Box frame{0, 0, 800, 500}, taken{280, 100, 420, 180};
  place_labels(labels, 11, frame, {taken});
  for (size_t i = 0; i < labels.size(); ++i) {
    REQUIRE(labels[i].placed);
    CHECK(labels[i].box.within(frame));
    CHECK_FALSE(labels[i].box.meets(taken));
    for (size_t j = 0; j < labels.size(); ++j) {
      if (j != i) CHECK_FALSE(labels[i].box.meets(labels[j].box));
      CHECK_FALSE(labels[i].box.meets({labels[j].x - 4, labels[j].y - 4, labels[j].x + 4, labels[j].y + 4}));
    }
  }
}

TEST_CASE("roofline: the picture shows every op that computes and moves, and both roofs") {
  Profile p;
  p.steps = 1, p.wall = 1;
  p.ops.push_back(
      {.name = "gemm", .way = Way::forward, .calls = 1, .own = 0.5, .flops = 40e9, .bytes = 1e9, .share = 0.5});
  p.ops.push_back(
      {.name = "softmax", .way = Way::backward, .calls = 1, .own = 0.2, .flops = 4e8, .bytes = 1e9, .share = 0.2});
  p.ops.push_back({.name = "reshape", .way = Way::forward, .calls = 1, .own = 0.1});
  Peaks peaks;
  peaks.gemm.best = 100, peaks.copy.best = 12.5;
  const std::string svg = roofline_svg(p, peaks, "Roofline");
  for (const char* part : {"gemm forward 50%", "softmax backward 20%", "100 GFLOP/s", "12.5 GB/s", "</svg>"}) {
    INFO(part);
    CHECK(svg.find(part) != svg.npos);
  }
  CHECK(svg.find("reshape") == svg.npos);
  CHECK(svg.find("no room") == svg.npos);
}
