#include <fmt/format.h>

#include <algorithm>

#include "apps/pages/html.h"
#include "apps/pages/sweep_charts.h"

namespace tapedeck {
namespace {

Series rule_line(const Json& summary, const char* rule, const char* name, int colour) {
  Series s{.name = name, .colour = colour, .dashed = true};
  for (const Json& size : list_in(summary, {"sizes"}))
    if (const double batch = number_in(size, {"batch"}), rate = number_in(size, {"rules", rule, "rate"});
        batch > 0 && rate > 0)
      s.points.push_back({.x = batch, .y = rate});
  return s;
}

}  // namespace

std::string rate_figure(const Json& summary) {
  Series inside{.name = "tuned rate", .markers = true}, edge{.name = "best at the edge of what was tried", .colour = 1};
  edge.line = false, edge.markers = true;
  for (const Json& size : list_in(summary, {"sizes"})) {
    const double batch = number_in(size, {"batch"}), rate = number_in(size, {"rate"});
    if (!(batch > 0 && rate > 0)) continue;
    const std::string at = text_in(size, {"edge"});
    inside.points.push_back(
        {.x = batch, .y = rate, .title = fmt::format("batch {}: rate {}", digits(batch), short_number(rate))});
    if (!at.empty())
      edge.points.push_back({.x = batch,
                             .y = rate,
                             .title = fmt::format("batch {}: rate {}, at the {} edge of what was tried", digits(batch),
                                                  short_number(rate), at)});
  }
  Chart chart{.title = "Tuned rate by batch size"};
  chart.note = "The dashed rules go through the reference size (or the nearest one that was tuned).";
  chart.x = axis_of_sweep(summary).axis(), chart.y = {.title = "learning rate", .scale = Scale::log};
  for (const Series& rule :
       {rule_line(summary, "linear", "linear rule", 2), rule_line(summary, "square root", "square-root rule", 3)})
    if (rule.points.size() > 1) chart.series.push_back(rule);
  if (!inside.points.empty()) chart.series.push_back(inside);
  if (!edge.points.empty()) chart.series.push_back(edge);
  return chart_figure(chart);
}

std::string noise_figure(const Json& summary) {
  const LawFigures law(part_of(summary, {"fit"}));
  const SizeAxis axis = axis_of_sweep(summary);
  Chart chart{.title = "Gradient noise scale beside B_crit"};
  chart.x = axis.axis(), chart.y = {.title = "examples", .scale = Scale::log};
  std::vector<Measured> middles;
  double least = NAN, most = NAN;
  for (const Json& size : list_in(summary, {"sizes"})) {
    const Middle m = middle_in(part_of(size, {"noise_scale"}));
    const double batch = number_in(size, {"batch"});
    if (!(batch > 0 && m.median > 0)) continue;
    middles.push_back({batch, m,
                       fmt::format("batch {}: median {} over {} runs", digits(batch), digits(m.median),
                                   digits(number_in(size, {"noise_scale", "n"})))});
    if (std::isfinite(m.median)) least = std::fmin(least, m.median), most = std::fmax(most, m.median);
  }
  if (middles.empty())
    return paragraph("The gradient noise scale was resolved in no run, so that nothing stands beside B_crit.", "note");
  add_runs(chart, counted_runs(summary), &CountedRun::noise);
  std::erase_if(chart.series, [](const Series& s) { return s.name == "missed"; });
  add_middles(chart, middles);
  chart.series.back().name = "noise scale B_simple, medians";
  fix_height(chart);
  chart.note = "The noise scale tr Σ/|G|² and the critical size are not the same: published ratios run from 0.05 to 8.";
  if (std::isnan(law.b_crit)) return chart_figure(chart);
  // Both in one picture, unless they are so far apart that neither can be read.
  if (chart.y.low) {
    chart.y.low = std::min(*chart.y.low, std::max(law.b_crit / 1.5, *chart.y.low / 300));
    chart.y.high = std::max(*chart.y.high, std::min(law.b_crit * 1.5, *chart.y.high * 300));
    const double low = std::fmax(law.low, *chart.y.low), high = std::fmin(law.high, *chart.y.high);
    if (low < high && !std::isnan(axis.low))
      chart.bands.push_back(
          {.name = "95 % interval of B_crit", .colour = 1, .edges = {{axis.low, low, high}, {axis.high, low, high}}});
  }
  chart.guides.push_back({law.b_crit, false, "B_crit " + digits(law.b_crit)});
  if (!std::isnan(least))
    chart.note += least == most ? fmt::format(" Here B_simple/B_crit is {}.", digits(least / law.b_crit))
                                : fmt::format(" Here B_simple/B_crit runs from {} to {} over the sizes.",
                                              digits(least / law.b_crit), digits(most / law.b_crit));
  return chart_figure(chart);
}

std::string targets_figure(const Json& summary) {
  const Json& fits = list_in(summary, {"fits"});
  if (fits.size() < 2) return "";
  Series s{.name = "B_crit", .line = false, .markers = true};
  std::string none;
  for (const Json& entry : fits) {
    const double target = number_in(entry, {"target"});
    const LawFigures law(part_of(entry, {"fit"}));
    if (std::isnan(target)) continue;
    if (std::isnan(law.b_crit)) {
      none += fmt::format(" At {} there is none.", short_number(target));
      continue;
    }
    s.points.push_back({.x = target,
                        .y = law.b_crit,
                        .low = law.low,
                        .high = law.high,
                        .title = fmt::format("target {}: B_crit {}, 95 % interval {}", short_number(target),
                                             digits(law.b_crit), range_text(law.low, law.high))});
  }
  Chart chart{.title = "B_crit by target"};
  chart.note = "With its 95 % interval." + none;
  chart.x = {.title = "target, validation " + text_in(summary, {"targets", "metric"})};
  chart.y = {.title = "B_crit, examples", .scale = Scale::log};
  if (!s.points.empty()) chart.series.push_back(s);
  fit_to_estimates(chart);
  return chart_figure(chart);
}

}  // namespace tapedeck
