#include "apps/summary.h"

#include <nlohmann/json.hpp>

namespace tapedeck {
namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace

void fill(Summary& s, const Config& c) {
  s.command = c.command, s.model = c.model, s.data = c.data, s.device = c.device, s.precision = c.precision;
  s.threads = c.threads, s.seed = c.seed, s.batch = c.batch, s.accumulate = c.accumulate;
}

void fill(Summary& s, const TrainingClock& clock) {
  const auto seconds = [&](Phase phase) { return clock.seconds(phase); };
  s.time = {seconds(Phase::data), seconds(Phase::init),       seconds(Phase::warmup),    seconds(Phase::train),
            seconds(Phase::eval), seconds(Phase::checkpoint), seconds(Phase::data_wait), clock.total()};
  if (clock.training() > 0) s.data_wait_ratio = seconds(Phase::data_wait) / clock.training();
}

void fill(Summary& s, const TargetTracker& tracker) {
  s.target = {};
  s.target.metric = tracker.target().metric;
  s.target.value = tracker.target().value;
  s.target.reached = tracker.reached();
  if (const std::optional<Moment> at = tracker.crossing()) {
    s.target.step = at->step, s.target.examples = at->examples;
    s.target.seconds = at->seconds, s.target.seconds_with_eval = at->seconds_with_eval;
  }
}

Json to_json(const Summary& s) {
  const auto& [f, g, t, m, l] = std::tie(s.final, s.target, s.time, s.memory, s.loss_scale);
  const auto step = [&](auto member) { return s.step_ms ? Json((*s.step_ms).*member) : Json(); };
  return {
      {"command", s.command},
      {"model", s.model},
      {"parameters", or_null(s.parameters)},
      {"data", s.data},
      {"device", s.device},
      {"precision", s.precision},
      {"threads", or_null(s.threads)},
      {"seed", or_null(s.seed)},
      {"batch", or_null(s.batch)},
      {"accumulate", or_null(s.accumulate)},
      {"steps", or_null(s.steps)},
      {"examples", or_null(s.examples)},
      {"epochs", or_null(s.epochs)},
      {"final",
       {{"train_loss", or_null(f.train_loss)},
        {"validation_loss", or_null(f.validation_loss)},
        {"validation_accuracy", or_null(f.validation_accuracy)},
        {"test_loss", or_null(f.test_loss)},
        {"test_accuracy", or_null(f.test_accuracy)}}},
      {"target",
       {{"metric", or_null(g.metric)},
        {"value", or_null(g.value)},
        {"reached", or_null(g.reached)},
        {"step", or_null(g.step)},
        {"examples", or_null(g.examples)},
        {"seconds", or_null(g.seconds)},
        {"seconds_with_eval", or_null(g.seconds_with_eval)}}},
      {"time",
       {{"data", or_null(t.data)},
        {"init", or_null(t.init)},
        {"warmup", or_null(t.warmup)},
        {"train", or_null(t.train)},
        {"eval", or_null(t.eval)},
        {"checkpoint", or_null(t.checkpoint)},
        {"data_wait", or_null(t.data_wait)},
        {"total", or_null(t.total)}}},
      {"step_ms",
       {{"median", step(&StepTimeSummary::median_ms)},
        {"p05", step(&StepTimeSummary::p05_ms)},
        {"p95", step(&StepTimeSummary::p95_ms)},
        {"n", step(&StepTimeSummary::n)}}},
      {"throughput",
       {{"examples_per_s", or_null(s.throughput.examples_per_s)},
        {"tokens_per_s", or_null(s.throughput.tokens_per_s)}}},
      {"data_wait_ratio", or_null(s.data_wait_ratio)},
      {"flops_per_example", or_null(s.flops_per_example)},
      {"gflops", or_null(s.gflops)},
      {"peak_gflops", or_null(s.peak_gflops)},
      {"memory",
       {{"peak_bytes", or_null(m.peak_bytes)},
        {"parameters", or_null(m.parameters)},
        {"gradients", or_null(m.gradients)},
        {"optimizer", or_null(m.optimizer)},
        {"activations_peak", or_null(m.activations_peak)}}},
      {"loss_scale",
       {{"final", or_null(l.final)},
        {"skipped", or_null(l.skipped)},
        {"growths", or_null(l.growths)},
        {"backoffs", or_null(l.backoffs)}}},
      {"status", s.status},
  };
}

}  // namespace tapedeck
