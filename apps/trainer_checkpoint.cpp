// How a run is saved, and how it goes on from there.
#include "apps/trainer.h"
#include "apps/weights.h"
#include "engine/safetensors.h"

namespace tapedeck {
namespace {

constexpr double minute = 60;  // seconds between checkpoints where --checkpoint-every is not given

Tensor flat(const std::vector<double>& values, const Shape& shape) { return Tensor::from(values, shape, Device::cpu); }

}  // namespace

bool Trainer::checkpoint_due() const {
  if (!folder_ || state_.step == 0 || state_.window.seen > 0) return false;
  if (checkpoint_name(state_.step, 0) == saved_) return false;
  return config_.checkpoint_every ? state_.step % *config_.checkpoint_every == 0
                                  : steady_seconds() - last_save_ >= minute;
}

Checkpoint Trainer::checkpoint() {
  Checkpoint out{
      .name = checkpoint_name(state_.step, state_.window.batches, evaluation_due()), .state = {}, .files = {}};
  out.state = {{"run", to_json(state_)},
               {"clock", to_json(clock_.reading())},
               {"load_seconds", load_seconds_before_ + feed_->load_seconds()},
               {"optimizer_steps", learner_->optimizer.steps()},
               {"metrics_bytes", metrics_bytes_}};
  out.files["weights.safetensors"] = weights_file(learner_->parameters);
  if (!best_weights_.empty()) out.files["best.safetensors"] = best_weights_;

  std::vector<NamedTensor> rest;
  for (const auto& [name, moment] : learner_->optimizer.moments()) rest.emplace_back("optimizer." + name, moment);
  if (state_.window.seen > 0) {
    learner_->parameters.complete_gradients();
    rest.emplace_back("gradients", learner_->parameters.gradients());
  }
  std::vector<double> losses;
  for (const LossSum& loss : state_.losses) losses.insert(losses.end(), {double(loss.examples), loss.sum});
  if (!losses.empty()) rest.emplace_back("losses", flat(losses, {std::ssize(state_.losses), 2}));
  const std::vector<double>& times = state_.times.milliseconds();
  if (!times.empty()) rest.emplace_back("step_ms", flat(times, {std::ssize(times)}));
  out.files["training.safetensors"] = to_safetensors(rest);
  return out;
}

bool Trainer::save_checkpoint() {
  const auto saving = clock_.enter(Phase::checkpoint);
  if (!learner_->parameters.broken_value().empty()) return false;
  metrics_bytes_ = folder_->sync_metrics();
  const Checkpoint now = checkpoint();
  Checkpoints(folder_->path()).save(now);
  saved_ = now.name;
  last_save_ = steady_seconds();
  return true;
}

void Trainer::restore(const Checkpoint& from) {
  const auto file = [&](const char* name) {
    const auto found = from.files.find(name);
    CHECK(found != from.files.end(), "checkpoint {}: holds no {}", from.name, name);
    return std::string_view(found->second);
  };
  const Schedule fresh = state_.schedule;  // of the options in effect
  const std::optional<TargetTracker> no_crossing_yet = state_.tracker;
  state_ = run_state(from.state.at("run"));
  if (const auto& old = state_.tracker; !old || !no_crossing_yet || old->target() != no_crossing_yet->target())
    state_.tracker = no_crossing_yet;
  load_weights(learner_->parameters, file("weights.safetensors"), from.name + "/weights.safetensors", problem_.data());

  std::vector<std::pair<std::string, Tensor>> moments;
  for (const auto& [name, tensor] : from_safetensors(file("training.safetensors"), from.name)) {
    if (name.starts_with("optimizer.")) moments.emplace_back(name.substr(10), tensor);
    if (name == "step_ms") state_.times = StepTimes(tensor.doubles());
    if (name == "gradients") {
      copy(learner_->parameters.gradients(), tensor);
      for (const Parameter* p : learner_->parameters.all()) p->value.grad->fresh = false;
    }
    if (name == "losses") {
      const std::vector<double> pairs = tensor.doubles();
      for (size_t i = 0; i + 1 < pairs.size(); i += 2)
        state_.losses.push_back({static_cast<int64_t>(pairs[i]), pairs[i + 1]});
    }
  }
  learner_->optimizer.restore(moments, from.state.at("optimizer_steps"));
  if (from.files.contains("best.safetensors")) best_weights_ = file("best.safetensors");

  if (state_.window.seen > 0) {  // of another size, when --batch or --accumulate was changed: the step begins anew
    const int64_t rows = std::ssize(problem_.data().train);
    if (state_.window.size != std::min(rows - state_.examples % rows, config_.batch * config_.accumulate))
      state_.window = {};
  }
  Schedule went_on = fresh;
  went_on.total = state_.schedule.total, went_on.bent_at = state_.schedule.bent_at;
  went_on.bent_done = state_.schedule.bent_done;
  state_.schedule = went_on.total == fresh.total ? went_on : went_on.bent(state_.step, fresh.total);
  if (went_on.total != fresh.total)
    progress_.message(
        text("the run now ends at step {} instead of {}{}", fresh.total, went_on.total,
             fresh.kind == Schedule::Kind::constant
                 ? ""
                 : "; the rate goes on from where it is, and what is left of its decay is spread over the "
                   "steps that are left"));
  clock_.go_on_from(clock_reading(from.state.at("clock")));
  load_seconds_before_ = from.state.at("load_seconds");
  metrics_bytes_ = from.state.at("metrics_bytes");
  if (folder_) folder_->keep_metrics(metrics_bytes_);
  saved_ = from.name;
}

}  // namespace tapedeck
