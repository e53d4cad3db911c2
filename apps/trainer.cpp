#include "apps/trainer.h"

#include <algorithm>
#include <cmath>

#include "apps/peaks.h"
#include "engine/backend.h"
#include "engine/checkpoint.h"

namespace tapedeck {
namespace {

// The path of the first parameter with a value that is not finite, or "".
std::string first_broken(const ParameterSet& parameters) {
  for (const Parameter* p : parameters.all())
    for (const double w : p->value.doubles())
      if (!std::isfinite(w)) return p->path;
  return "";
}

std::string weights_file(const ParameterSet& parameters) {
  std::vector<NamedTensor> weights;
  for (const Parameter* p : parameters.all()) weights.emplace_back(p->path, p->value);
  return to_safetensors(weights);
}

}  // namespace

Trainer::Trainer(const Config& config, const Problem& problem, Device device, TrainingClock& clock, Progress& progress,
                 RunFolder* folder)
    : config_(config),
      problem_(problem),
      device_(device),
      dtype_(find_precision(config)),
      clock_(clock),
      progress_(progress),
      folder_(folder),
      schedule_(make_schedule(config, problem)),
      epoch_steps_(steps_per_epoch(config, problem)),
      last_step_(total_steps(config, problem)),
      loader_(problem.data().train, config.batch, static_cast<uint64_t>(config.seed)) {
  if (config.target) tracker_.emplace(*config.target);
}

Summary Trainer::run() {
  {
    const auto warming = clock_.enter(Phase::warmup);
    warm_up(config_, problem_, device_, dtype_);
  }
  {
    const auto making = clock_.enter(Phase::init);
    learner_.emplace(config_, problem_, static_cast<uint64_t>(config_.seed), device_, dtype_);
    backend(device_).arena().reset_peak();
  }
  EvaluationPlan plan{config_.eval_every.value_or(config_.target ? 0 : epoch_steps_)};
  while (step_ < last_step_) {
    if (!take_step()) break;
    if ((plan.due(step_) || step_ == last_step_) && evaluate_now()) break;
  }
  if (tracker_ && status_ == "done") status_ = tracker_->reached() ? "target reached" : "target not reached";
  progress_.finish();
  return summarise();
}

// One optimizer step: a window of up to --accumulate batches that does not reach into the next epoch. Each batch weighs
// what it holds of the window's examples, so that the gradient is the mean over them however they are cut.
bool Trainer::take_step() {
  const double begin = steady_seconds();
  const auto training = clock_.enter(Phase::train);
  const int64_t rows = std::ssize(problem_.data().train);
  const int64_t left = rows - examples_ % rows;
  const int64_t window = std::min(left, config_.batch * config_.accumulate);
  learner_->parameters.forget_gradients();
  double loss = 0;
  for (int64_t seen = 0; seen < window;) {
    Inputs inputs;
    int64_t count = 0;
    {
      const auto waiting = clock_.enter(Phase::data_wait);
      const Batch batch = loader_.next();
      inputs = problem_.load(batch.rows);
      count = std::ssize(batch.rows);
    }
    const double share = static_cast<double>(count) / static_cast<double>(window);
    const Pass pass{true, static_cast<uint64_t>(config_.seed), static_cast<uint64_t>(batches_++)};
    loss += share * learn(*learner_, problem_, inputs, pass, share);
    seen += count;
  }
  if (std::isnan(loss)) loss = NAN;  // without the sign that a processor may give it
  const double rate = schedule_.rate(step_);
  const double norm = learner_->optimizer.step(std::isfinite(loss) ? rate : 0);  // a rate of 0 changes no weight
  examples_ += window;
  ++step_;
  times_.add(steady_seconds() - begin);

  const auto logging = clock_.enter(Phase::logging);
  log_step({window, loss * static_cast<double>(window)}, norm, rate);
  if (std::isfinite(norm) && std::isfinite(loss)) return true;
  status_ = "diverged";
  const std::string where = learner_->parameters.first_not_finite();
  reason_ = text(
      "diverged at step {}: the loss is {} and the gradient {}; no weight was changed by this step. Try a lower --lr "
      "(now {}) or --clip 1",
      step_, loss,
      !where.empty()        ? "of " + where + " is not finite"
      : std::isfinite(norm) ? "is finite"
                            : "is so long that its norm overflows",
      rate);
  return false;
}

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
                    .seconds = clock_.total()},
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

bool Trainer::evaluate_now() {
  Moment at{step_, examples_, clock_.training(), 0};
  {
    const auto evaluating = clock_.enter(Phase::eval);
    validation_ = problem_.score(learner_->scoring(), problem_.data().validation);
    last_evaluation_ = step_;
    if (std::isfinite(validation_->loss) && (!best_ || validation_->loss < best_->loss)) {
      best_ = validation_;
      evaluations_without_gain_ = 0;
      if (folder_ && first_broken(learner_->parameters).empty()) best_weights_ = weights_file(learner_->parameters);
    } else {
      ++evaluations_without_gain_;
    }
  }
  at.seconds_with_eval = clock_.with_evaluation();
  const auto logging = clock_.enter(Phase::logging);
  if (folder_) {
    Json line = {{"step", step_},
                 {"examples", examples_},
                 {"seconds", at.seconds},
                 {"wall_seconds", clock_.total()},
                 {"validation_loss", validation_->loss}};
    line["validation_accuracy"] = validation_->accuracy ? Json(*validation_->accuracy) : Json();
    folder_->append(std::move(line));
  }
  if (tracker_) {
    const double metric =
        tracker_->target().metric == "accuracy" ? validation_->accuracy.value_or(NAN) : validation_->loss;
    if (tracker_->observe(metric, at)) return true;
  }
  if (config_.patience && evaluations_without_gain_ >= *config_.patience) {
    reason_ = text("stopped early at step {}: the validation loss has not improved for {} evaluations", step_,
                   evaluations_without_gain_);
    return true;
  }
  return false;
}

void Trainer::save_weights() {
  const auto saving = clock_.enter(Phase::checkpoint);
  if (first_broken(learner_->parameters).empty())
    write_file(folder_->path() / "model.safetensors", weights_file(learner_->parameters));
  if (!best_weights_.empty()) write_file(folder_->path() / "best.safetensors", best_weights_);
}

Summary Trainer::summarise() {
  if (const std::string path = first_broken(learner_->parameters); !path.empty()) {
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
  const size_t values = learner_->parameters.values().bytes(), state = learner_->optimizer.state_bytes();
  const size_t peak = backend(device_).arena().use().peak_bytes;
  s.memory.peak_bytes = peak;
  s.memory.parameters = s.memory.gradients = values;
  s.memory.optimizer = state;
  s.memory.activations_peak = peak - 2 * values - state;
  s.status = status_;
  return s;
}

}  // namespace tapedeck
