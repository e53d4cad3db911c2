// What a training run leaves behind: lines of metrics, weights, and the summary.
#include <algorithm>
#include <cmath>

#include "apps/peaks.h"
#include "apps/trainer.h"
#include "apps/weights.h"
#include "engine/backend.h"

namespace tapedeck {

void Trainer::log_step(const StepsInFlight::Finished& finished) {
  const int64_t step = finished.step + 1;
  const double loss = finished.loss();
  const LossSum sum{finished.examples, loss * static_cast<double>(finished.examples)};
  if (finished.record.went || !scaler_.on()) state_.losses.push_back(sum);  // a skipped step taught nothing
  if (step % epoch_steps_ == 0 && std::ssize(state_.losses) > std::max<int64_t>(epoch_steps_, 100))
    state_.losses.erase(state_.losses.begin(), state_.losses.end() - std::max<int64_t>(epoch_steps_, 100));
  if (finished.record.went || !scaler_.on()) state_.logged.add(sum);
  const bool at_interval = step % config_.log_every == 0 || !finished.record.went || step == last_step_;
  const double seconds = clock_.training();
  progress_.update({.step = step,
                    .last_step = last_step_,
                    .loss = loss,
                    .rate = finished.record.rate,
                    .examples_per_s = static_cast<double>(finished.total) / seconds,
                    .data_wait = clock_.seconds(Phase::data_wait) / seconds,
                    .seconds = clock_.with_evaluation()},  // without loading and warming up
                   at_interval);
  if (!at_interval) return;
  if (folder_) {
    Json line = {{"step", step},
                 {"examples", finished.total},
                 {"seconds", seconds},
                 {"wall_seconds", clock_.total()},
                 {"train_loss", state_.logged.mean()},
                 {"gradient_norm", finished.record.norm},
                 {"lr", finished.record.rate}};
    if (watch_ && watch_->slows(finished.step)) line["profiled"] = true;
    if (scaler_.on()) line["loss_scale"] = finished.record.scale, line["skipped"] = finished.record.scaler.skipped;
    if (config_.noise_scale) add_noise(line, *state_.noise);
    folder_->append(std::move(line));
  }
  state_.logged = {};
}

void Trainer::save_weights() {
  const auto saving = clock_.enter(Phase::checkpoint);
  if (learner_->parameters.broken_value().empty())
    write_file(folder_->path() / "model.safetensors", weights_file(learner_->parameters));
  if (!best_weights_.empty()) write_file(folder_->path() / "best.safetensors", best_weights_);
}

void Trainer::fill_memory(Summary& s) const {
  const size_t values = learner_->parameters.value_bytes(), gradients = learner_->parameters.gradients().bytes();
  const size_t state = learner_->optimizer.state_bytes();
  const size_t peak = backend(device_).arena().use().peak_bytes;
  s.memory.peak_bytes = peak;
  s.memory.parameters = values;
  s.memory.gradients = gradients;
  s.memory.optimizer = state;
  const size_t before = learner_->batch_squares ? learner_->batch_squares->bytes() : 0;
  s.memory.activations_peak = peak - values - gradients - state - before - data_bytes_;
  s.memory.saved_activations = saved_bytes_;
  s.memory.workspace = *s.memory.activations_peak - saved_bytes_;
}

void Trainer::conclude() {
  if (const std::string path = learner_->parameters.broken_value(); !path.empty() && status_ != "diverged") {
    status_ = "diverged";
    reason_ = text("diverged by step {}: weights of {} are not finite, so no model is saved. Try a lower --lr (now {})",
                   state_.step, path, config_.lr);
  }
  if (state_.tracker && status_ == "done")
    status_ = state_.tracker->reached() ? "target reached" : "target not reached";
  if (config_.patience && status_ != "diverged" && state_.evaluations_without_gain >= *config_.patience)
    reason_ = text("stopped early at step {}: the validation loss has not improved for {} evaluations", state_.step,
                   state_.evaluations_without_gain);
}

Summary Trainer::finish() {
  conclude();
  const bool ended = status_ != "diverged" && status_ != "interrupted";
  if (ended) {
    const auto evaluating = clock_.enter(Phase::eval);
    if (state_.last_evaluation != state_.step) state_.validation = score(problem_.data().validation);
    if (!problem_.data().tests_on_validation) test_ = score(problem_.data().test);
  } else {
    state_.validation.reset();
  }
  // The checkpoint first: a run that was killed with its weights saved and no checkpoint could not go on.
  if (folder_ && ended) save_checkpoint();
  if (folder_ && status_ != "interrupted") save_weights();
  progress_.finish();
  return summary();
}

Summary Trainer::summary() const {
  Summary s;
  fill(s, config_);
  fill(s, clock_);
  s.time.data_load = load_seconds_before_ + feed_->load_seconds();
  if (state_.tracker) fill(s, *state_.tracker);
  s.device = name(device_);
  s.threads = threads();
  s.parameters = learner_->parameters.count();
  s.steps = state_.step;
  s.examples = state_.examples;
  s.epochs = static_cast<double>(state_.examples) / static_cast<double>(std::ssize(problem_.data().train));
  if (!state_.losses.empty()) {
    const int64_t window =
        std::min<int64_t>(std::ssize(state_.losses), state_.step >= epoch_steps_ ? epoch_steps_ : 100);
    LossSum last;
    std::for_each(state_.losses.end() - window, state_.losses.end(), [&](const LossSum& step) { last.add(step); });
    s.final.train_loss = last.mean();
  }
  if (state_.validation)
    s.final.validation_loss = state_.validation->loss, s.final.validation_accuracy = state_.validation->accuracy;
  if (test_) s.final.test_loss = test_->loss, s.final.test_accuracy = test_->accuracy;
  s.step_ms = state_.times.summary();
  const double seconds = clock_.training() - slowed_.seconds;
  if (state_.step > 0 && seconds > 0) {
    s.throughput.examples_per_s = static_cast<double>(state_.examples - slowed_.examples) / seconds;
    if (problem_.sequences())
      s.throughput.tokens_per_s = *s.throughput.examples_per_s * static_cast<double>(problem_.data().features);
    s.gflops = learner_->model->training_flops() * *s.throughput.examples_per_s / 1e9;
  }
  if (dtype_ == DType::f32 && device_ == Device::cpu)
    if (const auto peaks = cached_peaks()) s.peak_gflops = peaks->gemm.best;
  s.flops_per_example = learner_->model->training_flops();
  fill_memory(s);
  if (scaler_.on()) {
    const ScalerState scaler = learner_->state.read().scaler;
    s.loss_scale.final = scaler.scale, s.loss_scale.skipped = scaler.skipped;
    s.loss_scale.growths = scaler.growths, s.loss_scale.backoffs = scaler.backoffs;
  }
  if (config_.noise_scale) s.noise_scale = noise_summary(config_, *state_.noise);
  if (!reason_.empty()) s.reason = reason_;
  s.status = status_;
  return s;
}

}  // namespace tapedeck
