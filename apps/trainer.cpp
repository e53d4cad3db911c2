// One run, step by step; what it leaves behind is in trainer_record.cpp.
#include "apps/trainer.h"

#include <algorithm>
#include <cmath>

#include "apps/weights.h"
#include "engine/backend.h"

namespace tapedeck {
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
  const std::string where = learner_->parameters.broken_gradient();
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

bool Trainer::evaluate_now() {
  Moment at{step_, examples_, clock_.training(), 0};
  {
    const auto evaluating = clock_.enter(Phase::eval);
    validation_ = problem_.score(learner_->scoring(), problem_.data().validation);
    last_evaluation_ = step_;
    if (std::isfinite(validation_->loss) && (!best_ || validation_->loss < best_->loss)) {
      best_ = validation_;
      evaluations_without_gain_ = 0;
      if (folder_ && learner_->parameters.broken_value().empty()) best_weights_ = weights_file(learner_->parameters);
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

}  // namespace tapedeck
