#include "apps/step_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/device_time.h"
#include "apps/stats.h"

namespace tapedeck {

StepBench::StepBench(const Config& config, int64_t batch, Device device, bool graph)
    : batch(batch),
      device_(device),
      model_(features, config.hidden, classes, find_activation(config.activation), config.dropout),
      parameters_(model_, device, find_precision(config), static_cast<uint64_t>(config.seed)),
      scaler_(scaler_rule(config)),
      optimizer_(parameters_, optimizer_rule(config), DeviceValue<StepState>(device, {.scaler = first_state(scaler_)})),
      rate_(config.lr) {
  set_recompute(model_, config.recompute);
  Tensor::empty({batch, features}, DType::f32, device);  // a batch too large is refused before the host fills up
  std::vector<float> x;
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < batch * features; ++i)
    x.push_back(uniform01(random_bits(1, 0, site_of("bench"), static_cast<uint64_t>(i)).word[0]));
  for (int64_t i = 0; i < batch; ++i) labels.push_back(static_cast<int32_t>(i % classes));
  const Tensor plain = Tensor::from(x, {batch, features}, device);
  const DType dtype = find_precision(config);
  x_ = dtype == DType::f32 ? plain : cast(plain, dtype);
  labels_ = Tensor::from(labels, {batch}, device);
  graph_.emplace(device, graph);
}

void StepBench::round(int64_t steps) {
  const auto step = [this] { graph_->run({}, [this] { ask(); }); };
  for (int i = 0; i < warmup_steps; ++i) step();  // caches hold another batch size's data now
  const size_t before = milliseconds_.size();
  for (const WorkTime& took : time_work(device_, steps, step)) milliseconds_.push_back(took.device * 1e3);
  round_medians_.push_back(median(std::span(milliseconds_).subspan(before)));
  asked_ += warmup_steps + steps;
  const StepState state = optimizer_.state().read();
  if (!std::isfinite(state.norm) && state.updates < asked_)
    throw Diverged(
        text("batch {}: {} of {} steps changed the weights, the last gradient norm is not finite: a smaller --lr, or "
             "in fp16 "
             "another --loss-scale, may train",
             batch, state.updates, asked_));
  CHECK(state.updates > 0 && state.updates + state.scaler.skipped == asked_ && state.norm > 0,
        "{} of {} steps changed the weights, the last gradient norm is {}: this does not train", state.updates, asked_,
        state.norm);
}

std::vector<double> StepBench::outputs() const {
  const NoTape off;
  return model_(x_, {}).doubles();
}

void StepBench::ask() {
  parameters_.forget_gradients();
  StepState* const state = optimizer_.state().ptr();
  {
    Tape tape;
    const Tensor loss = cross_entropy(model_(x_, {true, 1, 0, &state->batches}), labels_);
    saved_bytes_ = saved_activations(tape, {x_, labels_});
    tape.backward(loss, seed_of(state, loss, 1));
    end_batch(state, loss, 1, batch);
  }
  optimizer_.advance({.schedule = {.base = rate_}, .scaler = scaler_});
}

int64_t timed_steps(const Config& config, int64_t batch, Device device) {
  return config.steps.value_or(device == Device::emulated ? 2 : std::clamp<int64_t>(8192 / batch, 10, 300));
}

std::string mlp_text(const Config& config, Device device) {
  std::string hidden;
  for (const int64_t width : config.hidden) hidden += fmt::format("{}-", width);
  return fmt::format("mlp {}-{}{}, {}, {} on {}, {} thread{}; {} warm-up steps before each round left out\n",
                     StepBench::features, hidden, StepBench::classes, config.optimizer, config.precision, name(device),
                     threads(), threads() == 1 ? "" : "s", StepBench::warmup_steps);
}

}  // namespace tapedeck
