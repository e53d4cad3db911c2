#include "apps/summary.h"

#include <nlohmann/json.hpp>

#include "engine/check.h"

namespace tapedeck {
namespace {

// Every field of the file, in its order, once for both directions. The order of nested names makes the objects.
template <class S, class Visit>
void fields(S& s, const Visit& visit) {
  visit("/command", s.command);
  visit("/model", s.model);
  visit("/parameters", s.parameters);
  visit("/data", s.data);
  visit("/device", s.device);
  visit("/precision", s.precision);
  visit("/threads", s.threads);
  visit("/seed", s.seed);
  visit("/batch", s.batch);
  visit("/accumulate", s.accumulate);
  visit("/steps", s.steps);
  visit("/examples", s.examples);
  visit("/epochs", s.epochs);
  visit("/final/train_loss", s.final.train_loss);
  visit("/final/validation_loss", s.final.validation_loss);
  visit("/final/validation_accuracy", s.final.validation_accuracy);
  visit("/final/test_loss", s.final.test_loss);
  visit("/final/test_accuracy", s.final.test_accuracy);
  visit("/target/metric", s.target.metric);
  visit("/target/value", s.target.value);
  visit("/target/reached", s.target.reached);
  visit("/target/step", s.target.step);
  visit("/target/examples", s.target.examples);
  visit("/target/seconds", s.target.seconds);
  visit("/target/seconds_with_eval", s.target.seconds_with_eval);
  visit("/time/data", s.time.data);
  visit("/time/init", s.time.init);
  visit("/time/warmup", s.time.warmup);
  visit("/time/train", s.time.train);
  visit("/time/eval", s.time.eval);
  visit("/time/checkpoint", s.time.checkpoint);
  visit("/time/data_wait", s.time.data_wait);
  visit("/time/data_load", s.time.data_load);
  visit("/time/total", s.time.total);
  visit("/step_ms", s.step_ms);
  visit("/throughput/examples_per_s", s.throughput.examples_per_s);
  visit("/throughput/tokens_per_s", s.throughput.tokens_per_s);
  visit("/data_wait_ratio", s.data_wait_ratio);
  visit("/flops_per_example", s.flops_per_example);
  visit("/gflops", s.gflops);
  visit("/peak_gflops", s.peak_gflops);
  visit("/memory/peak_bytes", s.memory.peak_bytes);
  visit("/memory/parameters", s.memory.parameters);
  visit("/memory/gradients", s.memory.gradients);
  visit("/memory/optimizer", s.memory.optimizer);
  visit("/memory/activations_peak", s.memory.activations_peak);
  visit("/memory/saved_activations", s.memory.saved_activations);
  visit("/memory/workspace", s.memory.workspace);
  visit("/loss_scale/final", s.loss_scale.final);
  visit("/loss_scale/skipped", s.loss_scale.skipped);
  visit("/loss_scale/growths", s.loss_scale.growths);
  visit("/loss_scale/backoffs", s.loss_scale.backoffs);
  visit("/noise_scale", s.noise_scale);
  visit("/reason", s.reason);
  visit("/status", s.status);
}

template <class S, class Visit>
void noise_fields(S& s, const std::string& at, const Visit& visit) {
  visit(at + "/value", s.value);
  visit(at + "/low", s.low);
  visit(at + "/high", s.high);
  visit(at + "/square", s.square);
  visit(at + "/trace", s.trace);
  visit(at + "/samples", s.samples);
  visit(at + "/left_out", s.left_out);
  visit(at + "/state", s.state);
  visit(at + "/how", s.how);
}

struct Write {
  Json& out;
  void operator()(const std::string& path, const std::string& text) const { out[Json::json_pointer(path)] = text; }
  template <class T>
  void operator()(const std::string& path, const std::optional<T>& value) const {
    out[Json::json_pointer(path)] = value ? Json(*value) : Json();
  }
  void operator()(const std::string& path, const std::optional<NoiseSummary>& value) const {
    if (value)
      noise_fields(*value, path, *this);
    else
      out[Json::json_pointer(path)] = nullptr;
  }
  void operator()(const std::string& path, const std::optional<StepTimeSummary>& value) const {
    Json& step = out[Json::json_pointer(path)] = {{"median", {}}, {"p05", {}}, {"p95", {}}, {"n", {}}};
    if (value) step = {{"median", value->median_ms}, {"p05", value->p05_ms}, {"p95", value->p95_ms}, {"n", value->n}};
  }
};

struct Read {
  const Json& in;

  template <class T>
  void operator()(const std::string& path, T& field) const {
    const Json::json_pointer place(path);
    if (in.contains(place) && !in[place].is_null()) get(path, in[place], field);
  }
  void operator()(const std::string& path, std::optional<NoiseSummary>& field) const {
    const Json::json_pointer place(path);
    if (in.contains(place) && in[place].is_object()) noise_fields(field.emplace(), path, *this);
  }
  void operator()(const std::string& path, std::optional<StepTimeSummary>& field) const {
    Number median, p05, p95;
    Count n;
    (*this)(path + "/median", median), (*this)(path + "/p05", p05);
    (*this)(path + "/p95", p95), (*this)(path + "/n", n);
    if (median && p05 && p95 && n) field = {*median, *p05, *p95, *n};
  }

 private:
  template <class T>
  static void get(const std::string& path, const Json& value, std::optional<T>& field) {
    get(path, value, field.emplace());
  }
  template <class T>
  static void get(const std::string& path, const Json& value, T& field) {
    const bool fits = std::is_same_v<T, bool>      ? value.is_boolean()
                      : std::is_same_v<T, int64_t> ? value.is_number_integer()
                      : std::is_same_v<T, double>  ? value.is_number()
                                                   : value.is_string();
    CHECK(fits, "summary: {} is {}, which is no value for it: was the file changed by hand?", path, value.dump());
    field = value.get<T>();
  }
};

}  // namespace

void fill(Summary& s, const Config& c) {
  s.command = c.command, s.model = c.model, s.data = c.data, s.device = c.device, s.precision = c.precision;
  s.threads = c.threads, s.seed = c.seed, s.batch = c.batch, s.accumulate = c.accumulate;
}

void fill(Summary& s, const TrainingClock& clock) {
  const auto seconds = [&](Phase phase) { return clock.seconds(phase); };
  s.time.data = seconds(Phase::data), s.time.init = seconds(Phase::init), s.time.warmup = seconds(Phase::warmup);
  s.time.train = seconds(Phase::train), s.time.eval = seconds(Phase::eval);
  s.time.checkpoint = seconds(Phase::checkpoint), s.time.data_wait = seconds(Phase::data_wait);
  s.time.total = clock.total();
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

Json to_json(const Summary& summary) {
  Json out;
  fields(summary, Write{out});
  return out;
}

Summary summary_from_json(const Json& document) {
  CHECK(document.is_object(), "summary: is {}, needs an object", document.type_name());
  Summary out;
  fields(out, Read{document});
  return out;
}

}  // namespace tapedeck
