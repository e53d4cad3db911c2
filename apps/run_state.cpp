#include "apps/run_state.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace tapedeck {
namespace {

// A number that is not finite is null in a file, and NaN again when it is read.
double number(const Json& json) { return json.is_null() ? NAN : json.get<double>(); }

template <class T, class F>
Json or_null(const std::optional<T>& value, const F& convert) {
  return value ? convert(*value) : Json();
}
template <class F>
auto unless_null(const Json& json, const F& convert) {
  return json.is_null() ? std::nullopt : std::optional(convert(json));
}

Json moment_json(const Moment& m) {
  return {
      {"step", m.step}, {"examples", m.examples}, {"seconds", m.seconds}, {"seconds_with_eval", m.seconds_with_eval}};
}
Moment moment(const Json& j) { return {j.at("step"), j.at("examples"), j.at("seconds"), j.at("seconds_with_eval")}; }

Json score_json(const Score& s) {
  return {{"loss", s.loss}, {"accuracy", s.accuracy ? Json(*s.accuracy) : Json()}, {"examples", s.examples}};
}
Score score(const Json& j) { return {number(j.at("loss")), unless_null(j.at("accuracy"), number), j.at("examples")}; }

Json scaler_json(const ScalerState& s) {
  return {{"scale", s.scale},     {"good", s.good},       {"in_a_row", s.in_a_row},
          {"skipped", s.skipped}, {"growths", s.growths}, {"backoffs", s.backoffs}};
}
ScalerState scaler(const Json& j) {
  return {j.at("scale"), j.at("good"), j.at("in_a_row"), j.at("skipped"), j.at("growths"), j.at("backoffs")};
}

Json tracker_json(const TargetTracker& t) {
  const TargetTracker::State& s = t.state();
  return {{"metric", t.target().metric},
          {"value", t.target().value},
          {"first_hit", or_null(s.first_hit, moment_json)},
          {"candidate", or_null(s.candidate, moment_json)},
          {"last_miss", s.last_miss},
          {"confirmed", s.confirmed}};
}
TargetTracker tracker(const Json& j) {
  return TargetTracker({j.at("metric"), j.at("value")},
                       {unless_null(j.at("first_hit"), moment), unless_null(j.at("candidate"), moment),
                        j.at("last_miss"), j.at("confirmed")});
}

}  // namespace

Json to_json(const RunState& s) {
  Json out = {
      {"step", s.step}, {"examples", s.examples}, {"optimizer_steps", s.optimizer_steps}, {"batches", s.batches}};
  out["window"] = {{"size", s.window.size}, {"seen", s.window.seen},       {"batches", s.window.batches},
                   {"loss", s.window.loss}, {"squares", s.window.squares}, {"seconds", s.window.seconds}};
  out["schedule"] = {{"total", s.schedule.total}, {"bent_at", s.schedule.bent_at}, {"bent_done", s.schedule.bent_done}};
  out["loss_scale"] = scaler_json(s.scaler);
  out["last_evaluation"] = s.last_evaluation;
  out["logged"] = {{"examples", s.logged.examples}, {"sum", s.logged.sum}};
  out["validation"] = or_null(s.validation, score_json);
  out["best"] = or_null(s.best, score_json);
  out["evaluations_without_gain"] = s.evaluations_without_gain;
  out["target"] = or_null(s.tracker, tracker_json);
  out["noise"] = or_null(s.noise, [](const NoiseMeter& meter) { return to_json(meter); });
  return out;
}

RunState run_state(const Json& j) {
  RunState s;
  s.step = j.at("step"), s.examples = j.at("examples"), s.batches = j.at("batches");
  s.optimizer_steps = j.at("optimizer_steps");
  const Json& window = j.at("window");
  s.window = {window.at("size"),
              window.at("seen"),
              window.at("batches"),
              number(window.at("loss")),
              window.contains("squares") ? number(window.at("squares")) : NAN,
              window.at("seconds")};
  const Json& schedule = j.at("schedule");
  s.schedule.total = schedule.at("total"), s.schedule.bent_at = schedule.at("bent_at");
  s.schedule.bent_done = schedule.at("bent_done");
  if (j.contains("loss_scale")) s.scaler = scaler(j.at("loss_scale"));  // older ones had none to keep
  s.last_evaluation = j.at("last_evaluation");
  s.logged = {j.at("logged").at("examples"), number(j.at("logged").at("sum"))};
  s.validation = unless_null(j.at("validation"), score);
  s.best = unless_null(j.at("best"), score);
  s.evaluations_without_gain = j.at("evaluations_without_gain");
  s.tracker = unless_null(j.at("target"), tracker);
  if (j.contains("noise")) s.noise = unless_null(j.at("noise"), noise_meter);
  return s;
}

// By name, so that a phase may be added without moving the times of older checkpoints.
Json to_json(const TrainingClock::Reading& reading) {
  Json out = {{"total", reading.total}};
  for (size_t i = 0; i < kPhases; ++i) out["seconds"][phase_names[i]] = reading.sums[i];
  return out;
}

TrainingClock::Reading clock_reading(const Json& json) {
  TrainingClock::Reading reading;
  reading.total = json.at("total");
  for (size_t i = 0; i < kPhases; ++i) reading.sums[i] = json.at("seconds").value(phase_names[i], 0.0);
  return reading;
}

}  // namespace tapedeck
