// What a training run leaves behind: lines of metrics, weights, and the summary.
#include <algorithm>

#include "apps/peaks.h"
#include "apps/trainer.h"
#include "apps/weights.h"
#include "engine/backend.h"

namespace tapedeck {

void Trainer::log_step(const LossSum& step, double norm, double rate) {
  const double loss = step.mean();
  losses_.push_back(step);
  if (step_ % epoch_steps_ == 0 && std::ssize(losses_) > std::max<int64_t>(epoch_steps_, 100))
    losses_.erase(losses_.begin(), losses_.end() - std::max<int64_t>(epoch_steps_, 100));
  logged_.add(step);
  const bool at_interval = step_ % config_.log_every == 0 || !std::isfinite(loss) || step_ == last_step_;
  const double seconds = clock_.training();
  progress_.update({.step = step_,
                    .last_step = last_step_,
                    .loss = loss,
                    .rate = rate,
                    .examples_per_s = static_cast<double>(examples_) / seconds,
                    .data_wait = clock_.seconds(Phase::data_wait) / seconds,
                    .seconds = clock_.with_evaluation()},  // without loading and warming up
                   at_interval);
  if (!at_interval) return;
  if (folder_)
    folder_->append({{"step", step_},
                     {"examples", examples_},
                     {"seconds", seconds},
                     {"wall_seconds", clock_.total()},
                     {"train_loss", logged_.mean()},
                     {"gradient_norm", norm},
                     {"lr", rate}});
  logged_ = {};
}

void Trainer::save_weights() {
  const auto saving = clock_.enter(Phase::checkpoint);
  if (learner_->parameters.broken_value().empty())
    write_file(folder_->path() / "model.safetensors", weights_file(learner_->parameters));
  if (!best_weights_.empty()) write_file(folder_->path() / "best.safetensors", best_weights_);
}

void Trainer::fill_memory(Summary& s) const {
  const size_t values = learner_->parameters.values().bytes(), state = learner_->optimizer.state_bytes();
  const size_t peak = backend(device_).arena().use().peak_bytes;
  s.memory.peak_bytes = peak;
  s.memory.parameters = s.memory.gradients = values;
  s.memory.optimizer = state;
  s.memory.activations_peak = peak - 2 * values - state;
}

Summary Trainer::summarise() {
  if (const std::string path = learner_->parameters.broken_value(); !path.empty()) {
    status_ = "diverged";
    reason_ = text("diverged by step {}: weights of {} are not finite, so no model is saved. Try a lower --lr (now {})",
                   step_, path, config_.lr);
  }
  const bool finite = status_ != "diverged";
  std::optional<Score> test;
  if (finite) {
    const auto evaluating = clock_.enter(Phase::eval);
    if (last_evaluation_ != step_) validation_ = problem_.score(learner_->scoring(), problem_.data().validation);
    test = problem_.score(learner_->scoring(), problem_.data().test);
  }
  if (folder_) save_weights();

  Summary s;
  fill(s, config_);
  fill(s, clock_);
  if (tracker_) fill(s, *tracker_);
  s.device = name(device_);
  s.threads = threads();
  s.parameters = learner_->parameters.count();
  s.steps = step_;
  s.examples = examples_;
  s.epochs = static_cast<double>(examples_) / static_cast<double>(std::ssize(problem_.data().train));
  if (!losses_.empty()) {
    const int64_t window = std::min<int64_t>(std::ssize(losses_), step_ >= epoch_steps_ ? epoch_steps_ : 100);
    LossSum last;
    std::for_each(losses_.end() - window, losses_.end(), [&](const LossSum& step) { last.add(step); });
    s.final.train_loss = last.mean();
  }
  if (finite && validation_)
    s.final.validation_loss = validation_->loss, s.final.validation_accuracy = validation_->accuracy;
  if (test) s.final.test_loss = test->loss, s.final.test_accuracy = test->accuracy;
  s.step_ms = times_.summary();
  const double seconds = clock_.training();
  if (step_ > 0 && seconds > 0) {
    s.throughput.examples_per_s = static_cast<double>(examples_) / seconds;
    s.gflops = learner_->model->training_flops() * *s.throughput.examples_per_s / 1e9;
  }
  if (dtype_ == DType::f32 && device_ == Device::cpu)
    if (const auto peaks = cached_peaks()) s.peak_gflops = peaks->gemm.best;
  s.flops_per_example = learner_->model->training_flops();
  fill_memory(s);
  s.status = status_;
  return s;
}

}  // namespace tapedeck
