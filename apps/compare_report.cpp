#include "apps/compare_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tapedeck {
namespace {

bool ended_well(const Summary& run) {
  return run.status != "diverged" && run.final.validation_loss && std::isfinite(*run.final.validation_loss);
}

// Places of the pairs of which both ended well. What diverged took other steps, and has no metric.
std::vector<size_t> good_pairs(const Comparison& c) {
  std::vector<size_t> out;
  for (size_t i = 0; i < c.runs_a.size(); ++i)
    if (ended_well(c.runs_a[i]) && ended_well(c.runs_b[i])) out.push_back(i);
  return out;
}

std::string spread_text(const std::vector<double>& values) {
  return fmt::format("{:.4f} ± {}", mean(values), deviation_text(sample_deviation(values)));
}

std::string error_line(const char* side, const OutputError& e) {
  if (!e.unusual()) return fmt::format("  {}: {:.2e}\n", side, e.relative);
  return fmt::format("  {}: {:.2e}  unusual: its precision makes {:.1e} to {:.1e}\n", side, e.relative, e.low, e.high);
}

std::string outputs_text(const OutputComparison& o) {
  std::string out =
      fmt::format("outputs, relative error against f64 ({} validation examples, {} numbers, the same weights)\n",
                  o.examples, o.outputs) +
      error_line("a", o.a) + error_line("b", o.b);
  if (!o.same) return out;
  out += fmt::format("decisions: {:.2f} % the same, {} of {} differ", 100 * *o.same, o.different, o.decisions);
  if (o.median_margin)
    out += fmt::format("; there a's choice leads b's by {:.2g} (median; most {:.2g}) of the outputs' size",
                       *o.median_margin, *o.largest_margin);
  return out + "\n";
}

// What went wrong in runs, and is not seen in the figures of the others.
std::string troubles_text(const Comparison& c) {
  std::string out;
  for (const auto& [side, runs] : {std::pair("a", &c.runs_a), {"b", &c.runs_b}}) {
    int64_t failed = 0, skipped = 0, steps = 0;
    for (const Summary& run : *runs) {
      failed += !ended_well(run);
      skipped += run.loss_scale.skipped.value_or(0), steps += run.steps.value_or(0);
    }
    if (failed > 0)
      out += fmt::format("{} diverged in {} of {} runs, which are left out\n", side, failed, runs->size());
    if (skipped > 0)
      out += fmt::format("{} skipped {} of its {} steps, whose gradients overflowed\n", side, skipped, steps);
  }
  return out;
}

int64_t examples_a_step(const Summary& run) { return run.batch.value_or(0) * run.accumulate.value_or(1); }

std::string steps_text(const Comparison& c) {
  const StepComparison steps = compare_steps(c);
  if (steps.a.empty()) return "step time: no seed ended well on both sides\n";
  std::string out = fmt::format("step time {:.3g} ms -> {:.3g} ms", median(steps.a), median(steps.b));
  if (steps.ratio)
    out += fmt::format(", ratio {:.3f} [{:.3f}, {:.3f}]", steps.ratio->ratio, steps.ratio->low, steps.ratio->high);
  const int64_t of_a = examples_a_step(c.runs_a[0]), of_b = examples_a_step(c.runs_b[0]);
  const std::string batch =
      of_a == of_b ? "same batch" : fmt::format("other batches: {} and {} examples a step", of_a, of_b);
  return out + fmt::format(" (same machine, {}, in turns, warm-up excluded, medians of n = {} and {} steps, {})\n",
                           batch, steps.steps_a, steps.steps_b,
                           steps.ratio ? fmt::format("{} pairs of runs", steps.a.size())
                                       : "one pair of runs: a ratio with its interval needs two seeds");
}

// The two lines: what it costs or wins, and what it does to the result.
std::string verdict(const Comparison& c) {
  const MetricComparison m = compare_metric(c);
  std::string out = steps_text(c);
  if (m.a.empty()) return out + "validation: no seed ended well on both sides\n";
  out += fmt::format("validation {} {} -> {} (mean ± deviation, seeds n = {})", m.name, spread_text(m.a),
                     spread_text(m.b), m.a.size());
  if (!m.interval) return out + ": one seed shows no spread\n";
  return out + fmt::format(": {} the seed spread; difference {:+.4f} [{:+.4f}, {:+.4f}], {}\n",
                           m.within_spread() ? "within" : "outside", *m.difference, m.interval->low, m.interval->high,
                           m.shown() ? "which does not cover 0" : "no difference shown");
}

Json number_or_null(const std::optional<double>& x) { return x && std::isfinite(*x) ? Json(*x) : Json(); }

Json error_json(const OutputError& e) {
  return {{"relative", number_or_null(e.relative)}, {"usual", {e.low, e.high}}, {"unusual", e.unusual()}};
}

}  // namespace

MetricComparison compare_metric(const Comparison& c) {
  MetricComparison m;
  bool accuracy = true;
  for (size_t i = 0; i < c.runs_a.size(); ++i)
    accuracy = accuracy && c.runs_a[i].final.validation_accuracy && c.runs_b[i].final.validation_accuracy;
  m.name = accuracy ? "accuracy" : "loss";
  std::vector<double> differences;
  for (const size_t i : good_pairs(c)) {
    const Summary &a = c.runs_a[i], &b = c.runs_b[i];
    m.a.push_back(accuracy ? *a.final.validation_accuracy : *a.final.validation_loss);
    m.b.push_back(accuracy ? *b.final.validation_accuracy : *b.final.validation_loss);
    differences.push_back(m.b.back() - m.a.back());
  }
  if (differences.empty()) return m;
  m.difference = mean(differences);
  m.interval = mean_interval(differences);
  if (m.interval) m.spread = std::max(*sample_deviation(m.a), *sample_deviation(m.b));
  return m;
}

StepComparison compare_steps(const Comparison& c) {
  StepComparison steps;
  for (const size_t i : good_pairs(c)) {
    const auto &a = c.runs_a[i].step_ms, &b = c.runs_b[i].step_ms;
    if (!a || !b) continue;
    steps.a.push_back(a->median_ms), steps.b.push_back(b->median_ms);
    steps.steps_a += a->n, steps.steps_b += b->n;
  }
  steps.ratio = paired_ratio(steps.b, steps.a);
  return steps;
}

std::string compare_report(const Comparison& c) {
  std::string out = fmt::format("a: {}\nb: {}\n", c.a, c.b);
  for (const std::string& difference : c.differences)
    out += fmt::format("warning: they also differ in {}, so that the verdict is on both\n", difference);
  out += c.outputs ? outputs_text(*c.outputs) : fmt::format("outputs: not compared, {}\n", c.no_outputs);
  return out + troubles_text(c) + verdict(c);
}

Json compare_json(const Comparison& c) {
  Json out = {{"command", "compare"}, {"a", c.a}, {"b", c.b}, {"also_different", c.differences}};
  if (const auto& o = c.outputs) {
    out["outputs"] = {{"examples", o->examples},
                      {"numbers", o->outputs},
                      {"a", error_json(o->a)},
                      {"b", error_json(o->b)},
                      {"decisions", o->decisions},
                      {"different", o->different},
                      {"median_margin", number_or_null(o->median_margin)},
                      {"largest_margin", number_or_null(o->largest_margin)}};
  } else {
    out["outputs"] = nullptr;
    out["outputs_why_not"] = c.no_outputs;
  }
  const StepComparison steps = compare_steps(c);
  out["step_ms"] = {{"a", steps.a}, {"b", steps.b}};
  out["step_ratio"] = steps.ratio ? Json({{"ratio", steps.ratio->ratio},
                                          {"low", steps.ratio->low},
                                          {"high", steps.ratio->high},
                                          {"n", steps.ratio->n}})
                                  : Json();
  const MetricComparison m = compare_metric(c);
  out["metric"] = {{"name", m.name},
                   {"a", m.a},
                   {"b", m.b},
                   {"difference", number_or_null(m.difference)},
                   {"low", m.interval ? number_or_null(m.interval->low) : Json()},
                   {"high", m.interval ? number_or_null(m.interval->high) : Json()},
                   {"difference_shown", m.interval ? Json(m.shown()) : Json()},
                   {"within_seed_spread", m.interval ? Json(m.within_spread()) : Json()}};
  for (const auto& [side, runs] : {std::pair("runs_a", &c.runs_a), {"runs_b", &c.runs_b}}) {
    out[side] = Json::array();
    for (const Summary& run : *runs) out[side].push_back(to_json(run));
  }
  out["verdict"] = Json::array();
  const std::string lines = verdict(c);
  for (size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1)
    out["verdict"].push_back(lines.substr(at, lines.find('\n', at) - at));
  return out;
}

}  // namespace tapedeck
