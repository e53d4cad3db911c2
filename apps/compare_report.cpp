#include "apps/compare_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace tapedeck {
namespace {

bool ended_well(const Summary& run) { return run.status != "diverged" && run.final.validation_loss.has_value(); }

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double x : values) sum += x;
  return sum / static_cast<double>(values.size());
}

std::vector<double> step_medians(const std::vector<Summary>& runs) {
  std::vector<double> out;
  for (const Summary& run : runs)
    if (run.step_ms) out.push_back(run.step_ms->median_ms);
  return out;
}

int64_t steps_of(const std::vector<Summary>& runs) {
  int64_t steps = 0;
  for (const Summary& run : runs) steps += run.step_ms ? run.step_ms->n : 0;
  return steps;
}

std::string spread_text(const std::vector<double>& values) {
  return fmt::format("{:.4f} ± {}", mean(values), deviation_text(sample_deviation(values)));
}

std::string error_line(const char* side, const OutputError& e) {
  return fmt::format("  {}: {:.2e}{}\n", side, e.relative,
                     e.unusual() ? fmt::format("  far above the {:.0e} that its precision makes", e.expected) : "");
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

std::string diverged_text(const Comparison& c) {
  std::string out;
  for (const auto& [side, runs] : {std::pair("a", &c.runs_a), {"b", &c.runs_b}}) {
    int64_t failed = 0;
    for (const Summary& run : *runs) failed += !ended_well(run);
    if (failed > 0)
      out += fmt::format("{} diverged in {} of {} runs, which are left out\n", side, failed, runs->size());
  }
  return out;
}

// The two lines: what it costs or wins, and what it does to the result.
std::string verdict(const Comparison& c) {
  std::string out;
  const std::vector<double> a = step_medians(c.runs_a), b = step_medians(c.runs_b);
  if (const auto ratio = compare_steps(c))
    out += fmt::format(
        "step time {:.3g} ms -> {:.3g} ms, ratio {:.3f} [{:.3f}, {:.3f}] (same machine, in turns, warm-up excluded, "
        "medians "
        "of n = {} and {} steps, {} pairs of runs)\n",
        median(a), median(b), ratio->ratio, ratio->low, ratio->high, steps_of(c.runs_a), steps_of(c.runs_b), ratio->n);
  else
    out += "step time: needs two seeds for a ratio with an interval\n";
  const MetricComparison m = compare_metric(c);
  if (m.a.empty()) return out + "validation: no seed ended well on both sides\n";
  out += fmt::format("validation {} {} -> {} (mean ± deviation, seeds n = {})", m.name, spread_text(m.a),
                     spread_text(m.b), m.a.size());
  if (!m.low) return out + ": one seed shows no spread\n";
  return out + fmt::format(": difference {:+.4f} [{:+.4f}, {:+.4f}], {} the seed spread\n", *m.difference, *m.low,
                           *m.high, m.within_spread() ? "within" : "outside");
}

Json numbers(const std::optional<double>& x) { return x && std::isfinite(*x) ? Json(*x) : Json(); }

Json error_json(const OutputError& e) {
  return {{"relative", numbers(e.relative)}, {"expected", e.expected}, {"unusual", e.unusual()}};
}

}  // namespace

MetricComparison compare_metric(const Comparison& c) {
  MetricComparison m;
  bool accuracy = true;
  for (size_t i = 0; i < c.runs_a.size(); ++i)
    accuracy = accuracy && c.runs_a[i].final.validation_accuracy && c.runs_b[i].final.validation_accuracy;
  m.name = accuracy ? "accuracy" : "loss";
  std::vector<double> differences;
  for (size_t i = 0; i < c.runs_a.size(); ++i) {
    const Summary &a = c.runs_a[i], &b = c.runs_b[i];
    if (!ended_well(a) || !ended_well(b)) continue;
    m.a.push_back(accuracy ? *a.final.validation_accuracy : *a.final.validation_loss);
    m.b.push_back(accuracy ? *b.final.validation_accuracy : *b.final.validation_loss);
    differences.push_back(m.b.back() - m.a.back());
  }
  if (differences.empty()) return m;
  m.difference = mean(differences);
  if (const auto deviation = sample_deviation(differences)) {
    const int n = static_cast<int>(differences.size());
    const double half = student_t_quantile(0.975, n - 1) * *deviation / std::sqrt(n);
    m.low = *m.difference - half, m.high = *m.difference + half;
  }
  return m;
}

std::optional<RatioInterval> compare_steps(const Comparison& c) {
  const std::vector<double> a = step_medians(c.runs_a), b = step_medians(c.runs_b);
  return a.size() == b.size() ? paired_ratio(b, a) : std::nullopt;
}

std::string compare_report(const Comparison& c) {
  std::string out = fmt::format("a: {}\nb: {}\n", c.a, c.b);
  for (const std::string& difference : c.differences)
    out += fmt::format("warning: they also differ in {}, so that the verdict is on both\n", difference);
  out +=
      c.outputs ? outputs_text(*c.outputs) : "outputs: not compared, the two models have other parameters or outputs\n";
  return out + diverged_text(c) + verdict(c);
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
                      {"median_margin", numbers(o->median_margin)},
                      {"largest_margin", numbers(o->largest_margin)}};
  } else {
    out["outputs"] = nullptr;
  }
  const auto steps = compare_steps(c);
  out["step_ratio"] =
      steps ? Json({{"ratio", steps->ratio}, {"low", steps->low}, {"high", steps->high}, {"n", steps->n}}) : Json();
  const MetricComparison m = compare_metric(c);
  out["metric"] = {{"name", m.name},
                   {"a", m.a},
                   {"b", m.b},
                   {"difference", numbers(m.difference)},
                   {"low", numbers(m.low)},
                   {"high", numbers(m.high)},
                   {"within_seed_spread", m.low ? Json(m.within_spread()) : Json()}};
  for (const auto& [side, runs] : {std::pair("runs_a", &c.runs_a), {"runs_b", &c.runs_b}}) {
    out[side] = Json::array();
    for (const Summary& run : *runs) out[side].push_back(to_json(run));
  }
  return out;
}

}  // namespace tapedeck
