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

// One chart: what a row of the fit says, and what the law says.
struct Figure {
  const char *title, *axis;
  Middle (*of_row)(const Json& row);
  double (*of_law)(const LawFigures& law, double batch);
  bool (*drawn)(const SweepRecord& sweep);
};

Middle steps_of(const Json& row) { return middle_in(row); }
Middle examples_of(const Json& row) {
  const double batch = number_in(row, {"batch"});
  const Middle steps = middle_in(row);
  return {batch * steps.median, batch * steps.low, batch * steps.high};
}
Middle seconds_of(const Json& row) { return middle_in(part_of(row, {"seconds"})); }

bool always(const SweepRecord&) { return true; }
bool timed(const SweepRecord& sweep) { return is_true(sweep.summary, {"timed"}); }

const Figure steps_figure = {"Steps to the target, S, by batch size", "steps to the target", steps_of,
                             [](const LawFigures& law, double batch) { return law.steps(batch); }, always};
const Figure examples_figure = {"Examples to the target, E, by batch size", "examples to the target", examples_of,
                                [](const LawFigures& law, double batch) { return law.emin + law.smin * batch; },
                                always};
const Figure seconds_figure = {"Time to the target, T, by batch size", "training time, s", seconds_of,
                               [](const LawFigures& law, double batch) {
                                 return law.timed() ? law.steps(batch) * law.seconds_a_step(batch) : NAN;
                               },
                               timed};

void add_sweep(Chart& chart, const Figure& figure, const SizeAxis& axis, const Sweeps& sweeps, size_t which,
               double target) {
  if (!figure.drawn(sweeps[which])) return;
  const Json& fit = fit_at(sweeps[which], target);
  const LawFigures law(fit);
  const int colour = static_cast<int>(which % 7);  // the eighth is grey, for ideal scaling
  Series points{.name = sweep_name(sweeps, which), .colour = colour, .line = false, .markers = true};
  for (const Json& row : list_in(fit, {"rows"})) {
    const double batch = number_in(row, {"batch"});
    const Middle m = figure.of_row(row);
    if (!(batch > 0) || !m.there()) continue;
    const bool missed = std::isinf(m.median);
    points.points.push_back({.x = batch,
                             .y = missed ? NAN : m.median,
                             .low = m.low,
                             .high = m.high,
                             .title = fmt::format("{}, batch {}: {}", points.name, digits(batch),
                                                  missed ? "not reached" : digits(m.median)),
                             .missed = missed});
  }
  if (!points.points.empty()) chart.series.push_back(points);
  if (law.there()) add_curve(chart, axis, "", colour, figure.of_law, law);
}

// Slope -1 through the smallest size of a sweep, as far as the chart goes down.
void add_ideal(Chart& chart, const SizeAxis& axis, const Sweeps& sweeps, double target) {
  bool named = false;
  for (const SweepRecord& sweep : sweeps) {
    const std::vector<SizeMiddle> sizes = middles_of_fit(fit_at(sweep, target));
    const auto first =
        std::find_if(sizes.begin(), sizes.end(), [](const SizeMiddle& s) { return std::isfinite(s.steps.median); });
    if (first == sizes.end() || !chart.y.low) continue;
    const double examples = first->batch * first->steps.median, end = std::min(axis.high, examples / *chart.y.low);
    if (!(end > first->batch)) continue;
    chart.series.push_back(
        {.name = named ? "" : "perfect scaling from the smallest size", .colour = 7, .dashed = true});
    chart.series.back().points = {{.x = first->batch, .y = first->steps.median}, {.x = end, .y = examples / end}};
    named = true;
  }
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
    Series s{.name = sweep_name(sweeps, i), .colour = static_cast<int>(i % 7), .markers = true};
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
  steps.note = fmt::format(
      "At a validation {} of {}: medians with exact 95 % intervals (none for n <= 5), and each law with the 95 % band "
      "of its bootstrap.",
      text_in(sweeps.front().summary, {"targets", "metric"}), short_number(target));
  add_ideal(steps, axis, sweeps, target);
  for (size_t i = 0; i < sweeps.size(); ++i) {
    const Json& fit = fit_at(sweeps[i], target);
    if (const LawFigures law(fit); law.b_crit >= axis.low && law.b_crit <= axis.high)
      steps.guides.push_back(
          {law.b_crit, true, fmt::format("B_crit {} {}", digits(law.b_crit), sweep_name(sweeps, i))});
    Band band{.colour = static_cast<int>(i % 7)};
    for (const Json& row : list_in(fit, {"band"})) {
      const double batch = number_in(row, {"batch"}), low = number_in(row, {"low"}), high = number_in(row, {"high"});
      if (batch > 0 && low > 0) band.edges.push_back({batch, low, std::isnan(high) ? INFINITY : high});
    }
    if (band.edges.size() > 1) steps.bands.push_back(band);
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
    Series s{.name = sweep_name(sweeps, i), .colour = static_cast<int>(i % 7), .line = false, .markers = true};
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
