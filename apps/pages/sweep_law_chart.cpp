#include "apps/pages/sweep_law_chart.h"

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {
namespace {

std::string title_of(double batch, const Middle& m, double reached, double n, bool horizon) {
  if (horizon && std::isinf(m.median)) return fmt::format("batch {}: no K that was tried passes", digits(batch));
  if (horizon)
    return fmt::format("batch {}: {} pass, {} do not; {} of a K", digits(batch), digits(m.high), digits(m.low),
                       times(n, "run"));
  const std::string interval = range_text(m.low, m.high);
  return fmt::format("batch {}: median {}, {}, {} of {} reached", digits(batch),
                     std::isinf(m.median) ? "not reached" : digits(m.median),
                     interval.empty() ? "no interval for n <= 5" : "95 % interval " + interval, digits(reached),
                     digits(n));
}

std::vector<Measured> measured(const std::vector<SizeMiddle>& sizes, Middle SizeMiddle::*figure) {
  std::vector<Measured> out;
  for (const SizeMiddle& s : sizes)
    if ((s.*figure).there())
      out.push_back({s.batch, s.*figure, title_of(s.batch, s.*figure, s.reached, s.n, s.horizon)});
  return out;
}

// By the same sizes that the page lists as definitions.
void add_regimes(Chart& chart, const LawFigures& law) {
  if (std::isnan(law.b_crit)) return;
  chart.regions.push_back({-INFINITY, law.b_crit / 5, "perfect scaling"});
  chart.regions.push_back({law.b_crit / 5, 10 * law.b_crit, "diminishing returns", false});
  chart.regions.push_back({10 * law.b_crit, INFINITY, "maximal"});
  chart.note += fmt::format(
      " Shaded: up to B_crit/5 = {} scaling is perfect (at most 20 % more examples than Emin), from 10 B_crit = {} on "
      "the parallelism is maximal (at most 10 % more steps than Smin).",
      digits(law.b_crit / 5), digits(10 * law.b_crit));
}

bool has(const std::vector<CountedRun>& runs, CountedRun::End end) {
  return std::any_of(runs.begin(), runs.end(), [&](const CountedRun& r) { return r.end == end; });
}

constexpr const char* fewest = "fewest steps whose runs pass";

bool any_horizon(const std::vector<SizeMiddle>& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](const SizeMiddle& s) { return s.horizon; });
}

std::string legend_of(const std::vector<SizeMiddle>& sizes, const std::vector<CountedRun>& runs) {
  if (any_horizon(sizes))
    return "Large points: the fewest steps K whose runs pass together, down to the most that do not. Triangles: runs "
           "of a K that does not pass.";
  std::string out = runs.empty() ? "Large points: medians" : "Small points: runs; large points: medians";
  out += " with their exact 95 % intervals (none for n <= 5).";
  if (has(runs, CountedRun::End::missed)) out += " Triangles: runs that missed, at least this much.";
  if (has(runs, CountedRun::End::diverged)) out += " Crosses at the top: runs that diverged.";
  return out;
}

}  // namespace

std::vector<SizeMiddle> middles_of_sweep(const Json& summary) {
  std::vector<SizeMiddle> out;
  for (const Json& size : list_in(summary, {"sizes"})) {
    const double batch = number_in(size, {"batch"});
    if (!(batch > 0)) continue;
    SizeMiddle middle{batch, number_in(size, {"n"}), number_in(size, {"reached"}), middle_in(part_of(size, {"steps"})),
                      middle_in(part_of(size, {"examples"}))};
    middle.horizon = is_horizon(summary);
    if (const HorizonRange range = range_at(size); middle.horizon && !std::isnan(range.passed)) {
      middle.steps.low = range.failed, middle.steps.high = range.passed;
      middle.examples.low = batch * range.failed, middle.examples.high = batch * range.passed;
    }
    out.push_back(middle);
  }
  return out;
}

std::vector<SizeMiddle> middles_of_fit(const Json& fit) {
  std::vector<SizeMiddle> out;
  for (const Json& row : list_in(fit, {"rows"})) {
    const double batch = number_in(row, {"batch"});
    if (!(batch > 0)) continue;
    const Middle steps = middle_in(row);
    out.push_back({batch,
                   number_in(row, {"n"}),
                   number_in(row, {"reached"}),
                   steps,
                   {batch * steps.median, batch * steps.low, batch * steps.high}});
  }
  return out;
}

SizeAxis::SizeAxis(const std::vector<SizeMiddle>& sizes, const LawFigures& law) {
  for (const SizeMiddle& size : sizes) low = std::fmin(low, size.batch), high = std::fmax(high, size.batch);
  if (std::isnan(low)) return;
  if (law.b_crit >= low / 4 && law.b_crit <= 4 * high)
    low = std::min(low, law.b_crit), high = std::max(high, law.b_crit);
  low /= 1.3, high *= 1.3;
}

SizeAxis axis_of_sweep(const Json& summary) {
  return {middles_of_sweep(summary), LawFigures(part_of(summary, {"fit"}))};
}

void SizeAxis::widen(const SizeAxis& other) { low = std::fmin(low, other.low), high = std::fmax(high, other.high); }

Axis SizeAxis::axis() const {
  Axis out{.title = "batch size, examples a step", .scale = Scale::log2};
  if (!std::isnan(low)) out.low = low, out.high = high;
  return out;
}

std::vector<double> SizeAxis::grid(int n) const {
  std::vector<double> out;
  for (int i = 0; i < n && !std::isnan(low); ++i) out.push_back(low * std::pow(high / low, double(i) / (n - 1)));
  return out;
}

void add_runs(Chart& chart, const std::vector<CountedRun>& runs, FigureOfRun figure) {
  using End = CountedRun::End;
  for (const End end : {End::reached, End::missed}) {
    Series s{.name = end == End::reached ? "runs" : "missed", .colour = end == End::reached ? 7 : 1, .line = false};
    s.markers = s.thin = true;
    for (const CountedRun& run : runs)
      if (run.end == end && run.*figure > 0)
        s.points.push_back({.x = run.batch, .y = run.*figure, .title = run.title, .missed = end == End::missed});
    if (!s.points.empty()) chart.series.push_back(s);
  }
}

void add_middles(Chart& chart, const std::vector<Measured>& middles, const char* name) {
  Series s{.name = name, .line = false, .markers = true};
  for (const auto& [batch, m, title] : middles) {
    const bool missed = std::isinf(m.median);
    s.points.push_back(
        {.x = batch, .y = missed ? NAN : m.median, .low = m.low, .high = m.high, .title = title, .missed = missed});
  }
  if (!s.points.empty()) chart.series.push_back(s);
}

void add_curve(Chart& chart, const SizeAxis& sizes, const std::string& name, int colour,
               double (*value)(const LawFigures&, double), const LawFigures& law, bool dashed) {
  Series s{.name = name, .colour = colour, .dashed = dashed};
  for (const double batch : sizes.grid()) s.points.push_back({.x = batch, .y = value(law, batch)});
  if (!s.points.empty()) chart.series.push_back(s);
}

void add_critical_size(Chart& chart, const SizeAxis& sizes, const LawFigures& law) {
  if (std::isnan(sizes.low) || std::isnan(law.b_crit)) return;
  chart.guides.push_back({law.b_crit, true, "B_crit " + digits(law.b_crit)});
  const double low = std::fmax(law.low, sizes.low), high = std::fmin(law.high, sizes.high);
  if (law.b_crit < sizes.low || law.b_crit > sizes.high) {
    chart.guides.pop_back();
    chart.note += fmt::format(" B_crit = {} lies beyond this axis.", digits(law.b_crit));
  }
  if (low < high && chart.y.low && chart.y.high)
    chart.bands.push_back({.name = "95 % interval of B_crit",
                           .colour = 1,
                           .edges = {{low, *chart.y.low, *chart.y.high}, {high, *chart.y.low, *chart.y.high}}});
}

void fix_height(Chart& chart) {
  double low = NAN, high = NAN;
  for (const Series& s : chart.series) {
    if (s.dashed || s.diverged) continue;
    for (const Point& p : s.points)
      for (const double y : {p.y, p.low, p.high})
        if (std::isfinite(y) && y > 0) low = std::fmin(low, y), high = std::fmax(high, y);
  }
  if (!std::isnan(low)) chart.y.low = low / 1.4, chart.y.high = high * 1.6;
}

void add_law_band(Chart& chart, const Json& fit, const std::string& name, int colour, bool of_examples) {
  Band band{.name = name, .colour = colour};
  for (const Json& row : list_in(fit, {"band"})) {
    const double batch = number_in(row, {"batch"}), low = number_in(row, {"low"}), high = number_in(row, {"high"});
    const double times = of_examples ? batch : 1;
    if (batch > 0 && low > 0) band.edges.push_back({batch, times * low, std::isnan(high) ? INFINITY : times * high});
  }
  if (band.edges.size() > 1) chart.bands.push_back(band);
}

void add_ideal(Chart& chart, const SizeAxis& sizes, const std::vector<SizeMiddle>& middles) {
  const char* name = "perfect scaling from the smallest size";
  const auto there = [&](const Series& s) { return s.name == name; };
  for (const SizeMiddle& first : middles) {
    if (!std::isfinite(first.steps.median) || !(first.steps.median > 0) || !chart.y.low) continue;
    const double examples = first.steps.median * first.batch;
    const double end = std::min(sizes.high, examples / *chart.y.low);
    if (!(end > first.batch)) return;
    Series line{.name = std::any_of(chart.series.begin(), chart.series.end(), there) ? "" : name, .colour = 7};
    line.dashed = true;
    line.points = {{.x = first.batch, .y = first.steps.median}, {.x = end, .y = examples / end}};
    chart.series.push_back(line);
    return;
  }
}

void fit_to_estimates(Chart& chart) {
  constexpr double runs_away = 20;
  double low = NAN, high = NAN;
  for (const Series& s : chart.series)
    for (const Point& p : s.points) {
      low = std::fmin(low, std::fmin(p.y, p.low > 0 ? std::fmax(p.low, p.y / runs_away) : NAN));
      high = std::fmax(high, std::fmax(p.y, std::isfinite(p.high) ? std::fmin(p.high, p.y * runs_away) : NAN));
    }
  if (!std::isnan(low)) chart.y.low = low / 1.3, chart.y.high = high * 1.3;
}

// At the plot's top, whatever they came to.
static void add_diverged(Chart& chart, const std::vector<CountedRun>& runs) {
  bool named = false;
  for (const CountedRun& run : runs) {
    if (run.end != CountedRun::End::diverged || !chart.y.high) continue;
    Series s{.name = named ? "" : "× diverged", .colour = 1, .line = false, .diverged = true};
    s.points.push_back({.x = run.batch, .y = *chart.y.high / 1.1, .title = run.title});
    chart.series.push_back(s);
    named = true;
  }
}

Chart steps_chart(const std::vector<SizeMiddle>& sizes, const std::vector<CountedRun>& runs, const Json& fit) {
  const LawFigures law(fit);
  const SizeAxis axis(sizes, law);
  const bool cost = text_in(fit, {"unit"}) == "cost";
  Chart chart{.title =
                  cost ? "Cost an example of the batch, S, by batch size" : "Steps to the target, S, by batch size"};
  chart.note = legend_of(sizes, runs);
  chart.x = axis.axis(), chart.y = {.title = cost ? "cost/batch" : "steps to the target", .scale = Scale::log};
  chart.large = true;
  if (law.there())
    add_curve(
        chart, axis, "law: Smin + Emin/B", 0, [](const LawFigures& l, double b) { return l.steps(b); }, law);
  add_runs(chart, runs, &CountedRun::steps);
  add_middles(chart, measured(sizes, &SizeMiddle::steps), any_horizon(sizes) ? fewest : "medians");
  fix_height(chart);
  add_ideal(chart, axis, sizes);
  add_diverged(chart, runs);
  add_law_band(chart, fit, "95 % band of the law", 0);
  add_critical_size(chart, axis, law);
  add_regimes(chart, law);
  return chart;
}

Chart examples_chart(const std::vector<SizeMiddle>& sizes, const std::vector<CountedRun>& runs, const Json& fit) {
  const LawFigures law(fit);
  const SizeAxis axis(sizes, law);
  const bool cost = text_in(fit, {"unit"}) == "cost";
  Chart chart{.title = cost ? "Cost to the target, E, by batch size" : "Examples to the target, E, by batch size"};
  if (!std::isnan(law.b_crit)) chart.note = "At B_crit a run needs twice Emin.";
  chart.x = axis.axis(), chart.y = {.title = cost ? "cost" : "examples to the target", .scale = Scale::log};
  if (law.there())
    add_curve(
        chart, axis, "law: Emin + Smin·B", 0, [](const LawFigures& l, double b) { return l.examples(b); }, law);
  add_runs(chart, runs, &CountedRun::examples);
  add_middles(chart, measured(sizes, &SizeMiddle::examples), any_horizon(sizes) ? fewest : "medians");
  fix_height(chart);
  add_diverged(chart, runs);
  add_law_band(chart, fit, "95 % band of the law", 0, true);
  add_critical_size(chart, axis, law);
  return chart;
}

}  // namespace tapedeck
