// Charts of sweeps laid over each other: a colour a sweep, its medians as points, its law as a line with its band.
#include <fmt/format.h>

#include <algorithm>

#include "apps/pages/axis.h"
#include "apps/pages/sweep_law_chart.h"
#include "apps/pages/sweeps_page.h"

namespace tapedeck {
namespace {

SizeAxis common_axis(const Sweeps& sweeps, double target) {
  const auto axis_of = [&](const SweepRecord& sweep) {
    const Json& fit = fit_at(sweep, target);
    return SizeAxis(middles_of_fit(fit), LawFigures(fit));
  };
  SizeAxis out = axis_of(sweeps.front());
  for (const SweepRecord& sweep : sweeps) out.widen(axis_of(sweep));
  return out;
}

// One chart: what a size says, and what the law says.
struct Figure {
  const char *title, *axis;
  std::map<double, Middle> (*of_sizes)(const SweepRecord& sweep, double target);
  double (*of_law)(const LawFigures& law, double batch);
};

std::map<double, Middle> examples_at(const SweepRecord& sweep, double target) {
  std::map<double, Middle> out = steps_at(sweep, target);
  for (auto& [batch, m] : out) m = {batch * m.median, batch * m.low, batch * m.high};
  return out;
}

std::map<double, Middle> seconds_at(const SweepRecord& sweep, double target) {
  std::map<double, Middle> out;
  if (is_true(sweep.summary, {"timed"}))
    for (const Json& row : list_in(fit_at(sweep, target), {"rows"}))
      if (const double batch = number_in(row, {"batch"}); batch > 0) out[batch] = middle_in(part_of(row, {"seconds"}));
  return out;
}

const Figure steps_figure = {"Steps to the target, S, by batch size", "steps to the target", steps_at,
                             [](const LawFigures& law, double batch) { return law.steps(batch); }};
const Figure examples_figure = {"Examples to the target, E, by batch size", "examples to the target", examples_at,
                                [](const LawFigures& law, double batch) { return law.examples(batch); }};
const Figure seconds_figure = {"Time to the target, T, by batch size", "training time, s", seconds_at,
                               [](const LawFigures& law, double batch) { return law.seconds(batch); }};

int colour_of(size_t which) { return static_cast<int>(which % 7); }  // the eighth is grey, for ideal scaling

void add_sweep(Chart& chart, const Figure& figure, const SizeAxis& axis, const Sweeps& sweeps, size_t which,
               double target) {
  const LawFigures law(fit_at(sweeps[which], target));
  Series points{.name = sweep_name(sweeps, which), .colour = colour_of(which), .line = false, .markers = true};
  for (const auto& [batch, m] : figure.of_sizes(sweeps[which], target)) {
    if (!m.there()) continue;
    const bool missed = std::isinf(m.median);
    points.points.push_back({.x = batch,
                             .y = missed ? NAN : m.median,
                             .low = m.low,
                             .high = m.high,
                             .title = fmt::format("{}, batch {}: {}", points.name, digits(batch),
                                                  missed ? "not reached" : digits(m.median)),
                             .missed = missed});
  }
  if (points.points.empty()) return;
  chart.series.push_back(points);
  if (law.there()) add_curve(chart, axis, "", colour_of(which), figure.of_law, law);
}

Chart chart_of(const Figure& figure, const Sweeps& sweeps, const SizeAxis& axis, double target) {
  Chart chart{.title = figure.title};
  chart.x = axis.axis(), chart.y = {.title = figure.axis, .scale = Scale::log};
  for (size_t i = 0; i < sweeps.size(); ++i) add_sweep(chart, figure, axis, sweeps, i, target);
  fix_height(chart);
  return chart;
}

Chart rates_chart(const Sweeps& sweeps, const SizeAxis& axis) {
  Chart chart{.title = "Tuned rate by batch size"};
  chart.x = axis.axis(), chart.y = {.title = "learning rate", .scale = Scale::log};
  for (size_t i = 0; i < sweeps.size(); ++i) {
    Series s{.name = sweep_name(sweeps, i), .colour = colour_of(i), .markers = true};
    for (const Json& size : list_in(sweeps[i].summary, {"sizes"}))
      if (const double batch = number_in(size, {"batch"}), rate = number_in(size, {"rate"}); batch > 0 && rate > 0)
        s.points.push_back({.x = batch,
                            .y = rate,
                            .title = fmt::format("{}, batch {}: rate {}", s.name, digits(batch), short_number(rate))});
    if (!s.points.empty()) chart.series.push_back(s);
  }
  chart.note = "Tuned for the tightest target of each sweep.";
  return chart;
}

}  // namespace

std::vector<std::string> sweeps_figures(const Sweeps& sweeps, double target) {
  const SizeAxis axis = common_axis(sweeps, target);
  Chart steps = chart_of(steps_figure, sweeps, axis, target);
  steps.large = true;
  steps.note = fmt::format("At a validation {} of {}: {}, and each law with the 95 % band of its bootstrap.",
                           text_in(sweeps.front().summary, {"targets", "metric"}), short_number(target),
                           is_horizon(sweeps.front().summary)
                               ? "the fewest steps K whose runs pass together, down to the most that do not"
                               : "medians with exact 95 % intervals (none for n <= 5)");
  for (size_t i = 0; i < sweeps.size(); ++i) {
    const Json& fit = fit_at(sweeps[i], target);
    add_ideal(steps, axis, middles_of_fit(fit));
    if (const LawFigures law(fit); law.b_crit >= axis.low && law.b_crit <= axis.high)
      steps.guides.push_back(
          {law.b_crit, true, fmt::format("B_crit {} {}", digits(law.b_crit), sweep_name(sweeps, i))});
    add_law_band(steps, fit, "", colour_of(i));
  }
  std::vector<std::string> out = {chart_figure(steps), chart_figure(chart_of(examples_figure, sweeps, axis, target))};
  if (Chart seconds = chart_of(seconds_figure, sweeps, axis, target); !seconds.series.empty()) {
    seconds.note = "Training clock: without evaluations, loading and warming up.";
    out.push_back(chart_figure(seconds));
  }
  out.push_back(chart_figure(rates_chart(sweeps, axis)));
  return out;
}

std::string sweeps_targets_figure(const Sweeps& sweeps, const std::vector<double>& targets) {
  if (targets.size() < 2) return "";
  Chart chart{.title = "B_crit by target"};
  chart.note = "With their 95 % intervals.";
  chart.x = {.title = "target, validation " + text_in(sweeps.front().summary, {"targets", "metric"})};
  chart.y = {.title = "B_crit, examples", .scale = Scale::log};
  for (size_t i = 0; i < sweeps.size(); ++i) {
    Series s{.name = sweep_name(sweeps, i), .colour = colour_of(i), .line = false, .markers = true};
    for (const double target : targets)
      if (const auto b_crit = b_crit_of(fit_at(sweeps[i], target)))
        s.points.push_back(
            {.x = target,
             .y = b_crit->value,
             .low = b_crit->low,
             .high = b_crit->high,
             .title = fmt::format("{}, target {}: B_crit {}, 95 % interval {}", s.name, short_number(target),
                                  digits(b_crit->value), range_text(b_crit->low, b_crit->high))});
    if (!s.points.empty()) chart.series.push_back(s);
  }
  fit_to_estimates(chart);
  return chart_figure(chart);
}

}  // namespace tapedeck
