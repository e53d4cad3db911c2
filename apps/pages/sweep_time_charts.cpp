#include <fmt/format.h>

#include <algorithm>

#include "apps/pages/html.h"
#include "apps/pages/sweep_charts.h"

namespace tapedeck {
namespace {

// Of a sweep's sizes or of a fit's rows.
std::vector<Measured> medians_of_seconds(const Json& sizes) {
  std::vector<Measured> out;
  for (const Json& size : sizes) {
    const double batch = number_in(size, {"batch"});
    const Middle m = middle_in(part_of(size, {"seconds"}));
    if (!(batch > 0) || !m.there()) continue;
    const std::string interval = m.low > 0 ? fmt::format(", 95 % interval {} to {}", time_text(m.low),
                                                         std::isinf(m.high) ? "no end" : time_text(m.high))
                                           : "";
    out.push_back({batch, m,
                   fmt::format("batch {}: median {}{}", digits(batch),
                               std::isinf(m.median) ? "not reached" : time_text(m.median), interval)});
  }
  return out;
}

void add_best_sizes(Chart& chart, const SizeAxis& axis, const LawFigures& law) {
  if (std::isnan(axis.low)) return;
  if (law.best_batch >= axis.low && law.best_batch <= axis.high)
    chart.guides.push_back({law.best_batch, true, "B* " + digits(law.best_batch) + " by the law"});
  else if (!std::isnan(law.best_batch))
    chart.note += fmt::format(" B* = {} lies beyond this axis.", digits(law.best_batch));
  if (law.measured_batch >= axis.low && law.measured_batch <= axis.high)
    chart.guides.push_back({law.measured_batch, true, "fastest measured " + digits(law.measured_batch)});
}

Chart time_chart(const SizeAxis& axis, const LawFigures& law, const std::vector<CountedRun>& runs, const Json& sizes) {
  Chart chart{.title = "Time to the target, T, by batch size"};
  chart.x = axis.axis(), chart.y = {.title = "training time, s", .scale = Scale::log};
  if (law.timed())
    add_curve(
        chart, axis, "law: (Smin + Emin/B)(a + c·B)", 0, [](const LawFigures& l, double b) { return l.seconds(b); },
        law);
  add_runs(chart, runs, &CountedRun::seconds);
  add_middles(chart, medians_of_seconds(sizes));
  fix_height(chart);
  add_best_sizes(chart, axis, law);
  return chart;
}

}  // namespace

std::string time_figure(const Json& summary) {
  if (!is_true(summary, {"timed"}))
    return paragraph(
        "Seconds are not compared, so there is no chart of the time to the target: " + why_untimed(summary) + ".",
        "note");
  Chart chart = time_chart(axis_of_sweep(summary), LawFigures(part_of(summary, {"fit"})), counted_runs(summary),
                           list_in(summary, {"sizes"}));
  chart.note = "Training clock: without evaluations, loading and warming up." + chart.note;
  return chart_figure(chart);
}

std::string time_figure_of_fit(const Json& fit) {
  const Json& rows = list_in(fit, {"rows"});
  const bool timed = std::any_of(rows.begin(), rows.end(),
                                 [](const Json& row) { return middle_in(part_of(row, {"seconds"})).there(); });
  if (!timed) return "";
  const LawFigures law(fit);
  Chart chart = time_chart(SizeAxis(middles_of_fit(fit), law), law, {}, rows);
  chart.note = "Medians of the seconds given with the runs." + chart.note;
  return chart_figure(chart);
}

std::string step_time_figure(const Json& summary) {
  const LawFigures law(part_of(summary, {"fit"}));
  const SizeAxis axis = axis_of_sweep(summary);
  Chart chart{.title = "Time of a step by batch size"};
  chart.note = "Medians with the 5 % and the 95 % quantile of single steps.";
  if (!is_true(summary, {"timed"})) chart.note += " Not to be compared: " + why_untimed(summary) + ".";
  chart.x = axis.axis(), chart.y = {.title = "a step, ms", .scale = Scale::log};
  Series s{.name = "steps", .line = false, .markers = true};
  for (const Json& size : list_in(summary, {"sizes"})) {
    const Json& step = part_of(size, {"step_ms"});
    const double batch = number_in(size, {"batch"}), middle = number_in(step, {"median"});
    const double low = number_in(step, {"p05"}), high = number_in(step, {"p95"});
    if (batch > 0 && middle > 0)
      s.points.push_back(
          {.x = batch,
           .y = middle,
           .low = low,
           .high = high,
           .title = fmt::format("batch {}: {} ms, 5 % {}, 95 % {}, n = {} steps", digits(batch), digits(middle),
                                digits(low), digits(high), digits(number_in(step, {"n"})))});
  }
  if (!s.points.empty()) chart.series.push_back(s);
  if (law.timed()) {
    add_curve(
        chart, axis, "a + c·B", 0, [](const LawFigures& l, double b) { return 1000 * l.seconds_a_step(b); }, law);
    chart.note += fmt::format(
        " a = {}, c = {} an example, fitted to seconds over steps of whole runs.", time_text(law.fixed),
        law.per_example < 1e-3 ? fmt::format("{:.3g} µs", 1e6 * law.per_example) : time_text(law.per_example));
  }
  fix_height(chart);
  return chart_figure(chart);
}

}  // namespace tapedeck
