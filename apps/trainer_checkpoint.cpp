// How a run is saved, and how it goes on from there.
#include <algorithm>
#include <cmath>

#include "apps/resume.h"
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
  const StepState on_device = learner_->state.read();
  state_.optimizer_steps = on_device.updates;
  state_.scaler = on_device.scaler;
  state_.window.loss = on_device.loss;
  state_.window.squares = find_noise_way(config_) == NoiseWay::none ? NAN : on_device.squares;
  Checkpoint out{
      .name = checkpoint_name(state_.step, state_.window.batches, evaluation_due()), .state = {}, .files = {}};
  Json run = to_json(state_);
  if (state_.window.seen > 0 && in_flight_.has_begun())
    run["window"]["seconds"] = state_.window.seconds + in_flight_.seconds_so_far();
  out.state = {{"run", std::move(run)},
               {"clock", to_json(clock_.reading())},
               {"load_seconds", load_seconds_before_ + feed_->load_seconds()},
               {"metrics_bytes", metrics_bytes_},
               {"options", kept_options(config_)}};
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
  folder_->stands();
  saved_ = now.name;
  last_save_ = steady_seconds();
  return true;
}

void Trainer::restore(const Checkpoint& from) {
  const Schedule in_effect = state_.schedule;
  const std::optional<TargetTracker> asked_for = state_.tracker;
  const std::optional<NoiseMeter> in_effect_noise = state_.noise;
  try {
    state_ = run_state(from.state.at("run"));
    load_seconds_before_ = from.state.at("load_seconds");
    metrics_bytes_ = from.state.at("metrics_bytes");
    clock_.go_on_from(clock_reading(from.state.at("clock")));
  } catch (const nlohmann::json::exception&) {
    throw Error(
        text("checkpoint {}: its state.json does not say where the run stands: of another version?", from.name));
  }
  if (in_effect_noise) {
    if (!state_.noise) state_.noise = in_effect_noise;
    state_.noise->population = in_effect_noise->population;
  }
  const std::optional<TargetTracker>& saved = state_.tracker;
  if (!asked_for || !saved || saved->target() != asked_for->target()) {
    if (asked_for) state_.last_evaluation = 0;  // no evaluation has judged this target yet
    state_.tracker = asked_for;
  }

  const int64_t window =
      std::min(epoch_examples_ - state_.examples % epoch_examples_, config_.batch * config_.accumulate);
  if (state_.window.seen > 0 && state_.window.size != window)
    state_.window = {};  // --batch or --accumulate has changed: the step begins anew
  restore_tensors(from);
  restore_schedule(in_effect);
  saved_ = from.name;
}

void Trainer::restore_tensors(const Checkpoint& from) {
  const auto file = [&](const char* name) {
    const auto found = from.files.find(name);
    CHECK(found != from.files.end(), "checkpoint {}: holds no {}", from.name, name);
    return std::string_view(found->second);
  };
  const Dataset& data = problem_.data();
  load_weights(learner_->parameters, file("weights.safetensors"), from.name + "/weights.safetensors",
               data_text(data.name, data.features, data.classes));
  if (from.files.contains("best.safetensors")) best_weights_ = file("best.safetensors");

  std::vector<std::pair<std::string, Tensor>> moments;
  for (const auto& [name, tensor] : from_safetensors(file("training.safetensors"), from.name)) {
    if (name.starts_with("optimizer.")) moments.emplace_back(name.substr(10), tensor);
    if (name == "step_ms") state_.times = StepTimes(tensor.doubles());
    if (name == "gradients") {
      copy(learner_->parameters.gradients(), tensor);
      for (const Parameter* p : learner_->parameters.all()) p->value.grad->fresh = false;
      if (learner_->batch_squares) learner_->batch_squares->restore(learner_->parameters);
    }
    if (name == "losses") {
      const std::vector<double> pairs = tensor.doubles();
      for (size_t i = 0; i + 1 < pairs.size(); i += 2)
        state_.losses.push_back({static_cast<int64_t>(pairs[i]), pairs[i + 1]});
    }
  }
  learner_->optimizer.restore(moments, {.step = state_.step,
                                        .updates = state_.optimizer_steps,
                                        .batches = state_.batches,
                                        .cursor = state_.examples + state_.window.seen,
                                        .loss = state_.window.loss,
                                        .squares = state_.window.seen > 0 ? state_.window.squares : 0,
                                        .scaler = state_.scaler});
}

// The rate is that of the options in effect, at the share of the decay that is done; see schedule.h where the length of
// the run has changed.
void Trainer::restore_schedule(const Schedule& in_effect) {
  const Schedule saved = state_.schedule;
  state_.schedule = in_effect;
  state_.schedule.total = saved.total, state_.schedule.bent_at = saved.bent_at;
  state_.schedule.bent_done = saved.bent_done;
  if (saved.total == in_effect.total) return;
  state_.schedule = state_.schedule.bent(state_.optimizer_steps, in_effect.total);
  const bool decays = in_effect.kind != Schedule::Kind::constant;
  progress_.message(text("the run now ends at step {} instead of {}{}", in_effect.total, saved.total,
                         decays
                             ? "; the rate goes on from where it is, and what is left of its decay is spread over the "
                               "steps that are left"
                             : ""));
}

}  // namespace tapedeck
