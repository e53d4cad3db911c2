// One run, step by step. What it leaves behind is in trainer_record.cpp, how it is saved and taken up again in
// trainer_checkpoint.cpp.
#include "apps/trainer.h"

#include <algorithm>
#include <cmath>

#include "apps/weights.h"
#include "engine/backend.h"
#include "engine/trace.h"

namespace tapedeck {
namespace {

struct Stopped {};  // thrown where the run is asked to stop; everything is then as before the batch or the evaluation

}  // namespace

Trainer::Trainer(const Config& config, const Problem& problem, Device device, TrainingClock& clock, Progress& progress,
                 RunFolder* folder, Stop stop)
    : config_(config),
      problem_(problem),
      device_(device),
      dtype_(find_precision(config)),
      scaler_(scaler_rule(config)),
      clock_(clock),
      progress_(progress),
      folder_(folder),
      stop_(std::move(stop)),
      epoch_steps_(steps_per_epoch(config, problem)),
      epoch_examples_(epoch_examples(config, problem)),
      last_step_(total_steps(config, problem)),
      in_flight_(device) {
  if (config.target) state_.tracker.emplace(*config.target);
  if (config.noise_scale) state_.noise.emplace(std::ssize(problem.data().train));
  state_.schedule = make_schedule(config, problem);
}

void Trainer::begin(const Checkpoint* from) {
  {
    const auto warming = clock_.enter(Phase::warmup);
    warm_up(config_, problem_, device_, dtype_);
  }
  const auto making = clock_.enter(Phase::init);
  const uint64_t seed = static_cast<uint64_t>(config_.seed);
  learner_.emplace(config_, problem_, seed, device_, dtype_);
  if (from) restore(*from);
  const Position next{state_.examples / epoch_examples_, state_.examples % epoch_examples_ + state_.window.seen};
  Arena& arena = backend(device_).arena();
  const size_t bytes_before = arena.use().bytes;
  const auto workers = config_.workers.value_or(default_workers(problem_));
  feed_.emplace(problem_, config_.batch, seed, next, static_cast<int>(workers), config_.prefetch,
                &learner_->state.ptr()->cursor, epoch_examples_);
  data_bytes_ = arena.use().bytes - bytes_before;
  graph_.emplace(device_, graph_wanted(config_, device_));
  if (folder_) folder_->keep_metrics(metrics_bytes_);
  arena.reset_peak();
  last_save_ = steady_seconds();
}

Summary Trainer::run() {
  if (!feed_) begin();
  try {
    train();
    return finish();
  } catch (const Stopped&) {
    status_ = "interrupted";
    if (folder_) save_checkpoint();
    return finish();
  } catch (const Error&) {  // a batch that cannot be read, say: the steps asked for before have happened all the same
    if (!settle(0)) return finish();
    throw;
  }
}

void Trainer::train() {
  while (true) {
    const bool evaluates = evaluation_due(), ends = over() || state_.step == last_step_;
    const bool stops = !evaluates && !ends && stop_(), saves = checkpoint_due();
    if (!settle(evaluates || ends || stops || saves ? 0 : in_flight_.lead())) break;
    if (evaluates) {
      evaluate_now();
      continue;
    }
    if (ends || (saves && !save_checkpoint())) break;
    if (stops) throw Stopped();
    ask_for_batch();
  }
}

// A step takes a window of up to --accumulate batches that does not reach into the next epoch. Each batch weighs what
// it holds of the window's examples, so that the gradient is the mean over them however they are cut.
void Trainer::ask_for_batch() {
  const auto training = clock_.enter(Phase::train);
  RunState::Window& window = state_.window;
  const bool first = window.seen == 0;
  if (first) {
    window.size = std::min(epoch_examples_ - state_.examples % epoch_examples_, config_.batch * config_.accumulate);
  }
  if (first || !in_flight_.has_begun()) in_flight_.begin();
  if (first && watch_) watch_->begins(state_.step);
  std::optional<Range> data(std::in_place, "data");  // until the batch is there as tensors
  const int64_t count = [&] {
    const auto waiting = clock_.enter(Phase::data_wait);
    return feed_->next();
  }();
  const double share = static_cast<double>(count) / static_cast<double>(window.size);
  window.seen += count;
  ++window.batches;
  const bool last = window.seen == window.size;
  // All that the calls below depend on, and may differ from one batch to the next: the number of rows, their share of
  // the window, the memory that the rows lie in, and whether gradients begin anew and an update follows.
  const StepGraph::Key key = {count, window.size, feed_->place(), 2 * first + last};
  if (!graph_->runs_plainly(key)) data.reset();  // what is captured begins and ends in itself
  const auto work = [&] {
    if (!data) data.emplace("data");
    const Inputs inputs = feed_->inputs();
    data.reset();
    if (first) learner_->parameters.forget_gradients();
    const size_t saved = learn(*learner_, problem_, inputs,
                               {true, static_cast<uint64_t>(config_.seed), 0, &learner_->state.ptr()->batches}, share);
    saved_bytes_ = std::max(saved_bytes_, static_cast<int64_t>(saved));
    if (learner_->batch_squares) learner_->batch_squares->add_to(learner_->state.ptr(), learner_->parameters, first);
    if (!last) return;
    const Range range("optimizer");
    learner_->optimizer.advance({.schedule = state_.schedule,
                                 .halt = true,
                                 .scaler = scaler_,
                                 .records = in_flight_.records(),
                                 .ring = StepsInFlight::ring});
  };
  graph_->run(key, work, watch_ ? watch_->graphs() : nullptr);
  ++state_.batches;
  if (!last) return;
  if (watch_) watch_->ends(state_.step);
  state_.examples += window.size;
  in_flight_.asked({state_.step++, window.size, state_.examples, window.seconds, noise_parts()});
  window = {};
}

int64_t Trainer::noise_parts() const {
  const RunState::Window& window = state_.window;
  if (learner_->example_squares) return window.size;
  return learner_->batch_squares && window.size % config_.batch == 0 ? window.batches : 0;
}

bool Trainer::settle(int64_t ahead) {
  if (in_flight_.size() <= ahead) return true;
  const auto training = clock_.enter(Phase::train);
  while (in_flight_.size() > ahead)
    if (!take_in(in_flight_.next())) return false;
  return true;
}

bool Trainer::take_in(const StepsInFlight::Finished& step) {
  if (watch_ && watch_->slows(step.step)) {
    slowed_.seconds += step.seconds;
    slowed_.examples += step.examples;
  } else {
    state_.times.add(step.seconds);
  }
  const auto logging = clock_.enter(Phase::logging);
  if (find_noise_way(config_) != NoiseWay::none) state_.noise->add(step.record, step.parts, step.examples);
  log_step(step);
  const StepRecord& done = step.record;
  if (done.went || !done.halted) return true;  // or skipped, and the next one goes on with a smaller scale
  // The device has changed nothing since. Steps that were asked for behind this one have not happened.
  state_.step = step.step + 1;
  state_.examples = step.total;
  state_.window = {};
  status_ = "diverged";
  if (scaler_.on()) {
    reason_ = overflow_text(done);
    return false;
  }
  reason_ = text(
      "diverged at step {}: the loss is {} and the gradient {}; no weight was changed by this step. Try a lower --lr "
      "(now {}){}",
      state_.step, step.loss(),
      done.broken >= 0           ? "of " + learner_->parameters.path_at(done.broken) + " is not finite"
      : std::isfinite(done.norm) ? "is finite"
                                 : "is so long that its norm overflows",
      done.rate, config_.clip ? "" : " or --clip 1");
  return false;
}

std::string Trainer::overflow_text(const StepRecord& done) {
  const std::string where = [&]() -> std::string {
    try {
      const std::string first = first_broken(*learner_, problem_, feed_->inputs(), static_cast<uint64_t>(config_.seed));
      return first.empty() ? "a checked re-run with another batch met no number that is not finite"
                           : "in a checked re-run the first tensor that is not finite is the " + first;
    } catch (const Error& error) {  // it is no reason to report another failure than the run's
      return std::string("a checked re-run failed (") + error.what() + ")";
    }
  }();
  const bool fixed = scaler_.kind == ScalerRule::Kind::fixed;
  return text(
      "persistent overflow at step {}: {} steps in a row were skipped, {} {}; {}. No weight was changed by these "
      "steps. "
      "Try {}--precision bf16, or a lower --lr (now {})",
      state_.step, done.scaler.in_a_row, fixed ? "and the loss scale stays at" : "though the loss scale is",
      fixed ? config_.loss_scale : text("{} by now", done.scaler.scale), where, fixed ? "--loss-scale dynamic, " : "",
      done.rate);
}

bool Trainer::evaluation_due() const {
  const EvaluationPlan plan{config_.eval_every.value_or(config_.target ? 0 : epoch_steps_)};
  return state_.window.seen == 0 && state_.last_evaluation < state_.step &&
         (plan.due(state_.step) || state_.step == last_step_);
}

bool Trainer::over() const {
  return (state_.tracker && state_.tracker->reached()) ||
         (config_.patience && state_.evaluations_without_gain >= *config_.patience);
}

Score Trainer::score(std::span<const int32_t> rows) const {
  const auto each = [&](std::span<const int32_t>, const std::vector<double>&) {
    if (stop_()) throw Stopped();
  };
  return problem_.score(learner_->scoring(), rows, each);
}

void Trainer::evaluate_now() {
  Moment at{state_.step, state_.examples, clock_.training(), 0};
  {
    const auto evaluating = clock_.enter(Phase::eval);
    const Score validation = score(problem_.data().validation);
    state_.validation = validation;
    state_.last_evaluation = state_.step;
    if (std::isfinite(validation.loss) && (!state_.best || validation.loss < state_.best->loss)) {
      state_.best = validation;
      state_.evaluations_without_gain = 0;
      if (folder_ && learner_->parameters.broken_value().empty()) best_weights_ = weights_file(learner_->parameters);
    } else {
      ++state_.evaluations_without_gain;
    }
  }
  // Where examples come again they may be learned by heart, which only their own score tells from understanding.
  std::optional<Score> training;
  if (problem_.data().whole_examples && last_step_ > epoch_steps_) {
    const auto evaluating = clock_.enter(Phase::eval);
    const std::span<const int32_t> rows = problem_.data().train;
    training = score(rows.first(std::min<size_t>(rows.size(), 1000)));
  }
  at.seconds_with_eval = clock_.with_evaluation();
  const auto logging = clock_.enter(Phase::logging);
  if (folder_) {
    Json line = {{"step", state_.step},
                 {"examples", state_.examples},
                 {"seconds", at.seconds},
                 {"wall_seconds", clock_.total()},
                 {"validation_loss", state_.validation->loss}};
    line["validation_accuracy"] = state_.validation->accuracy ? Json(*state_.validation->accuracy) : Json();
    if (training) line["train_accuracy"] = *training->accuracy;
    folder_->append(std::move(line));
  }
  if (TargetTracker* tracker = state_.tracker ? &*state_.tracker : nullptr)
    tracker->observe(
        tracker->target().metric == "accuracy" ? state_.validation->accuracy.value_or(NAN) : state_.validation->loss,
        at);
}

}  // namespace tapedeck
