// A whole training step as a graph: two batches with dropout, gathered by their shares, clipping, Adam with decay, and
// a rate that warms up and falls. Replays give bitwise what plain steps give, because all that changes is a StepState.
#include <vector>

#include "engine/step_graph.h"
#include "ops/layers.h"
#include "ops/optimizer.h"
#include "tests/gpu.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;

namespace {

constexpr StepPlan plan{.schedule = {.kind = Schedule::Kind::cosine, .base = 0.05, .warmup = 3, .total = 10}};

struct Net : Module {
  Net()
      : Module("net"),
        hidden(*this, "hidden", 6, 40, Activation::relu),
        drop(*this, "drop", 0.5),
        out(*this, "out", 40, 3) {}
  Linear hidden;
  Dropout drop;
  Linear out;
};

Tensor made_up(int64_t rows, double phase, Device device) {
  std::vector<float> x;
  for (int64_t i = 0; i < rows * 6; ++i) x.push_back(std::sin(static_cast<float>(static_cast<double>(i) + phase)));
  return Tensor::from(x, {rows, 6}, device);
}

struct Batch {
  Tensor x, labels;
};

class Training {
 public:
  Training(Device device, bool host_counter) : device_(device), host_counter_(host_counter) {}

  void step() {
    parameters_.forget_gradients();
    for (const Batch& batch : batches_) learn(batch);
    optimizer_.advance(plan);
  }
  std::vector<double> weights() const { return parameters_.values().doubles(); }
  StepState state() const { return optimizer_.state().read(); }

 private:
  void learn(const Batch& batch) {
    StepState* const state = optimizer_.state().ptr();
    const Pass pass{true, 5, host_counter_ ? host_batches_++ : 0, host_counter_ ? nullptr : &state->batches};
    const double share = static_cast<double>(batch.x.rows()) / 12;
    Tape tape;
    const Tensor loss = cross_entropy(net_.out(net_.drop(net_.hidden(batch.x), pass)), batch.labels);
    tape.backward(loss, share);
    end_batch(state, loss, share, batch.x.rows());
  }

  const Device device_;
  Net net_;
  ParameterSet parameters_{net_, device_, DType::f32, 3};
  Optimizer optimizer_{parameters_, {.kind = OptimizerRule::Kind::adamw, .weight_decay = 0.1, .clip = 0.5}};
  const std::vector<Batch> batches_{
      {made_up(8, 0, device_), Tensor::from(std::vector<int32_t>{0, 1, 2, 0, 1, 2, 0, 1}, {8}, device_)},
      {made_up(4, 0.5, device_), Tensor::from(std::vector<int32_t>{2, 2, 1, 0}, {4}, device_)}};
  const bool host_counter_;
  uint64_t host_batches_ = 0;
};

// Whether ten steps, captured and replayed, leave the weights of ten plain steps after each of them.
bool replays_faithfully(Device device, bool host_counter) {
  Training plain(device, host_counter), replayed(device, host_counter);
  StepGraph graph(device, true);
  bool same = true;
  for (int i = 0; i < 10; ++i) {
    plain.step();
    graph.run({}, [&] { replayed.step(); });
    same = same && plain.weights() == replayed.weights();
  }
  CHECK(graph.graphs() == 1);
  const StepState a = plain.state(), b = replayed.state();
  CHECK(a.updates == 10);
  CHECK(b.updates == 10);
  CHECK(b.batches == 20);
  CHECK(b.cursor == 120);
  CHECK(a.rate == b.rate);
  CHECK(b.rate == doctest::Approx(0.005));  // the last step's: a tenth
  CHECK(a.factor < 1);                      // it clipped
  return same;
}

}  // namespace

TEST_CASE("ten replays of a captured training step are bitwise ten plain steps") {
  for (const Device device : test::devices_with_lanes()) CHECK(replays_faithfully(device, false));
}

// Fault: a number of the host among a captured kernel's arguments, so that every replay drops what the capture dropped.
TEST_CASE("dropout that takes the host's count of batches is caught: replayed it trains otherwise") {
  for (const Device device : test::devices_with_lanes()) CHECK_FALSE(replays_faithfully(device, true));
}
