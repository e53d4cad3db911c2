// What --noise-scale measures inside a step, against gradients made one by one.
#include "ops/gradient_squares.h"

#include <cmath>
#include <utility>

#include "apps/noise_scale.h"
#include "tests/gpu.h"
#include "tests/test_data_folder.h"
#include "tests/training.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

const Settings mlp = {{"data", "blobs"}, {"hidden", "6,5"}, {"precision", "fp64"}, {"noise-scale", "true"}};
const Settings gpt = {{"data", "task:copy:length=4,symbols=8"},
                      {"layers", "1"},
                      {"heads", "2"},
                      {"width", "8"},
                      {"precision", "fp64"},
                      {"noise-scale", "true"},
                      {"accumulate", "2"}};

// A learner whose gradients are taken and whose weights stay.
struct Gradients {
  explicit Gradients(const Settings& settings)
      : training(settings), learner(training.config, training.problem, 3, training.device, training.dtype) {}

  Inputs load(int64_t first, int64_t count) const {
    return training.problem.load(std::span(training.problem.data().train).subspan(first, count));
  }
  void add(const Inputs& inputs, double share, bool first) {
    if (first) learner.parameters.forget_gradients();
    learn(learner, training.problem, inputs, {true, 3, 0}, share);
    if (learner.batch_squares) learner.batch_squares->add_to(learner.state.ptr(), learner.parameters, first);
  }
  std::vector<double> of(const Inputs& inputs) {  // alone
    add(inputs, 1, true);
    learner.parameters.complete_gradients();
    return learner.parameters.gradients().doubles();
  }
  double take_squares() {
    StepState state = learner.state.read();
    const double squares = std::exchange(state.squares, 0);
    learner.state.write(state);
    return squares;
  }

  Training training;
  Learner learner;
};

double square(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return sum;
}

constexpr int64_t cuts[] = {5, 5, 3};  // of a window
constexpr int64_t window = 13;

// n · Σ |c|², which is the mean of the examples' squares
double measured(const Settings& settings) {
  Gradients gradients(settings);
  int64_t first = 0;
  for (const int64_t count : cuts) {
    gradients.add(gradients.load(first, count), static_cast<double>(count) / window, first == 0);
    first += count;
  }
  return window * gradients.take_squares();
}

}  // namespace

// Fault: the share of a short batch, the loss scale, the bias, or what a fused epilogue leaves in place of dL/dy.
TEST_CASE("noise scale: the squares of examples are those of each gradient alone, however their product is fused") {
  double before = 0;
  for (const char* activation : {"relu", "gelu", "tanh"}) {
    const Settings base = with(mlp, {{"activation", activation}});
    Gradients alone(with(base, {{"batch", "1"}}));  // one example a step: not available, so nothing else is measured
    double mean = 0;
    for (int64_t i = 0; i < window; ++i) mean += square(alone.of(alone.load(i, 1))) / window;
    CHECK(alone.take_squares() == 0);
    CHECK(mean > 0);
    CHECK(mean != before);
    before = mean;
    for (const Device device : all_devices())
      for (const char* recompute : {"none", "blocks", "every=2"}) {
        INFO(std::string(activation) << " on " << std::string(name(device)) << ", recompute "
                                     << std::string(recompute));
        const Settings here = {{"device", name(device)}, {"recompute", recompute}};
        CHECK(measured(with(base, here)) == doctest::Approx(mean).epsilon(1e-12));
        CHECK(measured(with(with(base, here), {{"precision", "fp32"}})) == doctest::Approx(mean).epsilon(1e-5));
        CHECK(measured(with(with(base, here), {{"precision", "bf16"}})) == doctest::Approx(mean).epsilon(0.05));
        // The scale of 65536 is taken out where a step ends, which is not here.
        CHECK(measured(with(with(base, here), {{"precision", "fp16"}})) / std::exp2(32) ==
              doctest::Approx(mean).epsilon(0.01));
      }
  }
}

// Of row i alone, in the same batch and so under the same masks: all other labels are ignored.
TEST_CASE("noise scale: the squares of examples hold with dropout") {
  for (const Device device : all_devices()) {
    Gradients gradients(with(mlp, {{"dropout", "0.4"}, {"device", name(device)}}));
    const Inputs batch = gradients.load(0, window);
    gradients.add(batch, 1, true);
    const double squares = gradients.take_squares();
    const std::vector<int32_t> labels = batch.answer.values<int32_t>();
    double sum = 0;
    for (size_t i = 0; i < labels.size(); ++i) {
      std::vector<int32_t> one(labels.size(), ignored_label);
      one[i] = labels[i];
      sum += square(gradients.of({batch.x, Tensor::from(one, {window}, device)}));
    }
    CHECK(sum > 0);
    CHECK(window * squares == doctest::Approx(sum / window).epsilon(1e-12));
  }
}

// Fault: what lies in the buffer from the window before, or a part of the model that a batch leaves alone.
TEST_CASE("noise scale: the squares of micro-batches are those of each batch's gradient alone") {
  constexpr int64_t parts = 3, each = 4;
  for (const Device device : all_devices()) {
    const Settings here = with(gpt, {{"device", name(device)}});
    Gradients gradients(here), alone(here);
    for (const int64_t begin : {int64_t{0}, parts * each}) {
      double mean = 0;
      for (int64_t i = 0; i < parts; ++i) {
        gradients.add(gradients.load(begin + i * each, each), 1.0 / parts, i == 0);
        mean += square(alone.of(alone.load(begin + i * each, each))) / parts;
        CHECK(alone.take_squares() > 0);
      }
      CHECK(mean > 0);
      CHECK(parts * gradients.take_squares() == doctest::Approx(mean).epsilon(1e-10));
    }
  }
}

TEST_CASE("noise scale: examples and micro-batches of one model agree within the interval") {
  Gradients by_example(with(mlp, {{"precision", "fp32"}}));
  Gradients by_batch(with(mlp, {{"precision", "fp32"}, {"noise-scale", "false"}}));
  by_batch.learner.batch_squares.emplace(by_batch.learner.parameters);
  constexpr int64_t parts = 4, each = 8, steps = 96;
  NoiseScale examples(1e9), batches(1e9);
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t i = 0; i < parts; ++i)
      for (Gradients* g : {&by_example, &by_batch})
        g->add(g->load((step * parts + i) * each, each), 1.0 / parts, i == 0);
    const double s2 = square(by_batch.learner.parameters.gradients().doubles());
    const int64_t n = parts * each;
    examples.add(*noise_sample(n * by_example.take_squares(), s2, n, 1, 0), n);
    batches.add(*noise_sample(parts * by_batch.take_squares(), s2, parts, each, 0), n);
  }
  const NoiseEstimate a = *examples.estimate(), b = *batches.estimate();
  REQUIRE(a.scale);
  REQUIRE(b.scale);
  INFO("per example " << *a.scale << " [" << *a.low << ", " << *a.high << "], micro-batches " << *b.scale << " ["
                      << *b.low << ", " << *b.high << "]");
  CHECK(*b.low < *a.scale);
  CHECK(*a.scale < *b.high);
  CHECK(*a.high / *a.low < *b.high / *b.low);  // many small parts say more than few large ones
}

TEST_CASE(
    "noise scale: a model whose rows are no examples, or whose parameters are not all in linear layers, is refused") {
  const Device device = Device::cpu;
  ExampleSquares squares(device, 4);
  const Tensor dz = Tensor::full({8, 2}, DType::f32, device, 1), x = Tensor::full({8, 3}, DType::f32, device, 1);
  CHECK_THROWS_AS(squares.add_layer(dz, x, true), Error);
  const DeviceValue<StepState> state(device);
  CHECK_THROWS_AS(squares.add_to(state.ptr(), 5), Error);
}
