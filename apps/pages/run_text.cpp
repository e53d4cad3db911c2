#include "apps/pages/run_text.h"

#include <fmt/format.h>

#include <cmath>

#include "apps/stats.h"
#include "apps/train_report.h"

namespace tapedeck {
namespace {

std::string plain_at(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) return "";
  const Json& value = object[key];
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
}

std::string sign_of(const std::string& metric) { return metric == "loss" ? "≤" : "≥"; }

std::string score(Number loss, Number accuracy, const std::string& name) {
  if (!loss && !accuracy) return "not scored";
  std::string out = accuracy ? fmt::format("{} {:.4f}", name, *accuracy) : "";
  if (loss) out += fmt::format("{}loss {}", out.empty() ? "" : ", ", short_number(*loss));
  return out;
}

// The last evaluation before the crossing: the true one lies in between.
std::optional<int64_t> last_miss(const RunRecord& run, int64_t crossing) {
  std::optional<int64_t> before;
  for (const Json& line : run.metrics)
    if (line.contains("validation_loss") && line["step"].get<int64_t>() < crossing) before = line["step"];
  return before;
}

}  // namespace

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number < 0 ? -number : number);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return (number < 0 ? "-" : "") + digits;
}

std::string bytes_text(int64_t bytes) {
  constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double size = static_cast<double>(bytes);
  size_t unit = 0;
  while (size >= 1024 && unit < 4) size /= 1024, ++unit;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", size, units[unit]);
}

std::string accuracy_name(const RunRecord& run) {
  const std::string data = run.option("data");
  return data.starts_with("task:") ? "exact match" : data.starts_with("text:") ? "token accuracy" : "accuracy";
}

std::string what_was_trained(const RunRecord& run) {
  const std::string model = run.option("model");
  std::string out = model.empty() ? "a model" : model;
  if (run.summary && run.summary->parameters)
    out += fmt::format(" with {} parameters", grouped(*run.summary->parameters));
  out += " on " + run.option("data");
  if (run.data.is_object() && run.data.contains("splits") && run.data["splits"].is_object() &&
      run.data["splits"].contains("train") && run.data["splits"]["train"].is_number_integer())
    out += fmt::format(" ({} training examples)", grouped(run.data["splits"]["train"]));
  out += fmt::format(", {} on {}", run.option("precision"),
                     run.summary ? run.summary->device : plain_at(run.machine, "device"));
  const std::string threads = plain_at(run.machine, "threads");
  if (!threads.empty()) out += fmt::format(", {} thread{}", threads, threads == "1" ? "" : "s");
  out += fmt::format(", batch {}", run.option("batch"));
  if (run.option("accumulate") != "1" && !run.option("accumulate").empty())
    out += fmt::format(" × {} a step", run.option("accumulate"));
  return out + fmt::format(", {} at rate {} ({})", run.option("optimizer"), run.option("lr"), run.option("schedule"));
}

std::string how_it_went(const RunRecord& run) {
  if (!run.summary) return fmt::format("The run is not finished: {} lines of metrics, no summary.", run.metrics.size());
  const Summary& s = *run.summary;
  const std::string after = fmt::format("{} steps, {} examples, {:.1f} epochs", grouped(s.steps.value_or(0)),
                                        grouped(s.examples.value_or(0)), s.epochs.value_or(0));
  if (const auto step = run.diverged())
    return fmt::format("The run diverged at step {}: loss or gradient was no finite number. Its curves end there.",
                       *step);
  if (s.status == "interrupted") return fmt::format("The run was interrupted after {}; it can go on.", after);
  if (!s.target.metric)
    return fmt::format("It trained for {} in {} on the training clock, without a target.", after,
                       seconds_text(s.time.train.value_or(0)));
  const std::string target =
      fmt::format("validation {} {} {}", *s.target.metric, sign_of(*s.target.metric), s.target.value.value_or(0));
  if (!s.target.reached.value_or(false))
    return fmt::format("The target, {}, was not reached in {} ({} on the training clock).", target, after,
                       seconds_text(s.time.train.value_or(0)));
  const int64_t step = s.target.step.value_or(0);
  std::string out = fmt::format(
      "It reached {} in {} on the training clock, which stands still for evaluation ({} with evaluation), n = 1 run: "
      "at "
      "step {}, after {} examples.",
      target, seconds_text(s.target.seconds.value_or(NAN)), seconds_text(s.target.seconds_with_eval.value_or(NAN)),
      grouped(step), grouped(s.target.examples.value_or(0)));
  if (const auto miss = last_miss(run, step))
    out += fmt::format(" The crossing lies in steps ({}, {}], and the next evaluation confirmed it.", grouped(*miss),
                       grouped(step));
  return out;
}

std::vector<std::string> how_all_went(const RunGroup& group) {
  const std::vector<Summary> runs = group.summaries();
  if (runs.empty()) return {"None of the runs is finished."};
  if (!runs.front().target.metric)
    return {fmt::format("{} runs without a target, with seeds of their own.", runs.size())};
  const RepeatStatistics r = repeat_statistics(runs);
  std::vector<std::string> out;
  out.push_back(fmt::format(
      "{} of {} runs reached validation {} {} {}; median {} on the training clock, which stands still for evaluation. "
      "Runs that missed count as infinite.",
      r.reached, r.runs, *runs.front().target.metric, sign_of(*runs.front().target.metric),
      runs.front().target.value.value_or(0), seconds_text(r.median.value_or(INFINITY))));
  out.push_back(r.low ? fmt::format("Exact {:.1f} % interval of the median: {} to {}, n = {}.",
                                    100 * r.coverage.value_or(0), seconds_text(*r.low),
                                    seconds_text(r.high.value_or(INFINITY)), r.runs)
                      : fmt::format("There is no 95 % interval of a median from n = {} runs: it takes 6.", r.runs));
  out.push_back(r.expected_running_time
                    ? fmt::format("Expected running time (time of all runs / runs that reached): {}.",
                                  seconds_text(*r.expected_running_time))
                    : "Expected running time: none reached.");
  return out;
}

Facts summary_facts(const RunRecord& run) {
  Facts out = {{"status", run.status()}};
  if (!run.summary) return out;
  const Summary& s = *run.summary;
  const std::string name = accuracy_name(run);
  const auto seconds = [&](const char* what, Number value) {
    if (value) out.push_back({what, seconds_text(*value)});
  };
  out.push_back({"validation, last", score(s.final.validation_loss, s.final.validation_accuracy, name)});
  out.push_back({"test", score(s.final.test_loss, s.final.test_accuracy, name)});
  if (s.final.train_loss) out.push_back({"training loss, last epoch", short_number(*s.final.train_loss)});
  out.push_back({"steps", fmt::format("{} of {} examples each", grouped(s.steps.value_or(0)),
                                      grouped(s.batch.value_or(0) * s.accumulate.value_or(1)))});
  if (s.step_ms)
    out.push_back(
        {"step time", fmt::format("{:.3g} ms (median; 5 % to 95 %: {:.3g} to {:.3g}; n = {} steps)",
                                  s.step_ms->median_ms, s.step_ms->p05_ms, s.step_ms->p95_ms, grouped(s.step_ms->n))});
  if (s.throughput.examples_per_s)
    out.push_back({"throughput", fmt::format("{} examples/s (all examples / all training time)",
                                             short_number(*s.throughput.examples_per_s, 3))});
  if (s.throughput.tokens_per_s) out.push_back({"", short_number(*s.throughput.tokens_per_s, 3) + " tokens/s"});
  if (s.gflops)
    out.push_back({"arithmetic", s.peak_gflops
                                     ? fmt::format("{:.3g} GFLOP/s, {:.0f} % of the best product here ({:.3g})",
                                                   *s.gflops, 100 * *s.gflops / *s.peak_gflops, *s.peak_gflops)
                                     : fmt::format("{:.3g} GFLOP/s", *s.gflops)});
  if (s.data_wait_ratio)
    out.push_back({"waiting for data", fmt::format("{:.1f} % of the step", 100 * *s.data_wait_ratio)});
  seconds("training clock", s.time.train);
  seconds("evaluation", s.time.eval);
  seconds("once: loading data", s.time.data);
  seconds("once: making the model", s.time.init);
  seconds("once: warming up", s.time.warmup);
  seconds("saving", s.time.checkpoint);
  seconds("in all", s.time.total);
  if (s.memory.peak_bytes) out.push_back({"memory at most", bytes_text(*s.memory.peak_bytes)});
  if (s.loss_scale.final)
    out.push_back({"loss scale", fmt::format("{} at the end; {} steps skipped", short_number(*s.loss_scale.final),
                                             s.loss_scale.skipped.value_or(0))});
  if (const auto& noise = s.noise_scale)
    out.push_back({"gradient noise scale",
                   noise->value ? fmt::format("B_simple {} [{}, {}], n = {} steps, {}; not the critical batch size",
                                              short_number(*noise->value, 3), short_number(noise->low.value_or(NAN), 3),
                                              short_number(noise->high.value_or(NAN), 3), noise->samples.value_or(0),
                                              noise->how.value_or("batches of two sizes"))
                                : noise->state});
  return out;
}

Facts machine_facts(const Json& m) {
  if (!m.is_object()) return {{"machine", "not recorded"}};
  Facts out;
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) out.push_back({name, text});
  };
  add("processor", plain_at(m, "processor"));
  std::string features;
  if (m.contains("features") && m["features"].is_array())
    for (const Json& feature : m["features"])
      if (feature.is_string()) features += (features.empty() ? "" : " ") + feature.get<std::string>();
  add("features", features);
  add("cores", fmt::format("{}, {} of them allowed", plain_at(m, "logical_cores"), plain_at(m, "allowed_cores")));
  add("threads", plain_at(m, "threads"));
  add("device", plain_at(m, "device"));
  if (m.contains("gpu") && m["gpu"].is_object()) add("GPU", plain_at(m["gpu"], "name"));
  add("driver", plain_at(m, "driver"));
  if (m.contains("memory_bytes") && m["memory_bytes"].is_number_integer()) add("memory", bytes_text(m["memory_bytes"]));
  if (m.contains("load") && m["load"].is_object() && m["load"].contains("busy"))
    add("at the start", m["load"]["busy"] == true ? "busy with something else: times are too long" : "quiet");
  add("tapedeck", plain_at(m, "version"));
  add("commit", plain_at(m, "commit"));
  add("compiler", plain_at(m, "compiler"));
  add("flags", plain_at(m, "flags"));
  add("libraries", plain_at(m, "libraries"));
  return out;
}

Facts data_facts(const RunRecord& run) {
  if (!run.data.is_object()) return {{"data", run.option("data") + ", not described further"}};
  Facts out = {{"data", run.option("data")}};
  if (run.data.contains("splits") && run.data["splits"].is_object())
    for (const auto& [part, count] : run.data["splits"].items())
      if (count.is_number_integer()) out.push_back({part + " examples", grouped(count)});
  for (const char* key : {"features", "classes", "hash"})
    if (const std::string text = plain_at(run.data, key); !text.empty()) out.push_back({key, text});
  return out;
}

std::string options_html(const Json& config) {
  if (!config.is_object()) return "";
  Table chosen{{"option", "value", "origin"}, {}};
  Facts others;
  for (const auto& [name, entry] : config.items()) {
    if (!entry.is_object() || !entry.contains("value")) continue;
    const std::string origin = plain_at(entry, "origin"), value = plain_at(entry, "value");
    if (origin == "default")
      others.push_back({name, value.empty() ? "none" : value});
    else
      chosen.rows.push_back({{name}, {value.empty() ? "none" : value}, {origin}});
  }
  std::string out = chosen.rows.empty() ? paragraph("Every option has its default.") : html_table(chosen);
  return out + paragraph("Defaults:", "note") + facts(others, true);
}

}  // namespace tapedeck
