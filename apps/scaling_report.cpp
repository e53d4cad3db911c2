#include "apps/scaling_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/stats.h"

namespace tapedeck {
namespace {

std::string between(const Bounds& bounds) {
  return fmt::format("[{}, {}]", three_digits(bounds.low), three_digits(bounds.high));
}

std::string line(const SizeRow& row) {
  const std::string interval = !row.interval                   ? "none for n <= 5"
                               : std::isinf(row.interval->low) ? "not reached"
                               : std::isinf(row.interval->high)
                                   ? fmt::format("[{}, not reached]", three_digits(row.interval->low))
                                   : between(*row.interval);
  return fmt::format("{:>9.0f} {:>5} {:>8} {:>13} {:>22} {:>10} {:>9}\n", row.batch, row.n, row.reached,
                     std::isinf(row.median) ? "not reached" : three_digits(row.median), interval,
                     three_digits(row.fitted),
                     row.residual ? fmt::format("{:+.1f} %", 100 * std::expm1(*row.residual)) : "n/a");
}

std::string table(const ScalingFit& fit) {
  std::string out = fmt::format("{:>9} {:>5} {:>8} {:>13} {:>22} {:>10} {:>9}\n", "batch", "n", "reached",
                                fit.data.cost ? "median cost" : "median steps", "95 % interval", "fitted", "off by");
  for (const SizeRow& row : fit.rows) out += line(row);
  return out;
}

std::string law_text(const ScalingFit& fit) {
  const auto n = fit.data.runs.size();
  const bool cost = fit.data.cost;
  std::string out = fmt::format(
      "law: S(B) = Smin + Emin/B, by maximum likelihood over {} {}s, log S normal around it (sigma {:.3g}{})\n"
      "  Smin {} {} {}, Emin {} {} {}\n",
      n, fit.data.each, fit.law.sigma, fit.law.sigma < 1.0001 * least_sigma ? ", the least taken" : "",
      three_digits(fit.law.smin), between(fit.bootstrap.smin), cost ? "cost an example" : "steps",
      three_digits(fit.law.emin()), between(fit.bootstrap.emin), cost ? "cost" : "examples");
  const long intervals = std::count_if(fit.data.runs.begin(), fit.data.runs.end(),
                                       [](const ScalingRun& run) { return run.lower != run.upper && run.reached(); });
  if (const long missed = static_cast<long>(n) - fit.reached(); missed + intervals > 0)
    out += fmt::format("  {} runs count as intervals between two evaluations, {} that missed as beyond their cap\n",
                       intervals, missed);
  if (intervals > 0) out += "  off by: median of the middles of the intervals against the law\n";
  return out;
}

std::string definitions(double b_crit) {
  if (b_crit == 0 || std::isinf(b_crit)) return "critical sizes: none, the curve does not bend\n";
  const CriticalSizes sizes = critical_sizes(b_crit);
  return fmt::format(
      "critical sizes by four definitions, on this curve:\n"
      "{:>12}  B_crit: half the examples are spent to save steps\n"
      "{:>12}  B_crit/5: 20 % more examples than Emin\n"
      "{:>12}  B_crit/9: 90 % efficient\n"
      "{:>12}  10 B_crit: within 10 % of Smin\n",
      three_digits(sizes.half_efficient), three_digits(sizes.fifth_more), three_digits(sizes.ninety_efficient),
      three_digits(sizes.near_smin));
}

std::string b_crit_text(const ScalingFit& fit) {
  const Bootstrap& b = fit.bootstrap;
  std::string out = fmt::format(
      "B_crit = Emin/Smin: {} examples, 95 % interval {}: {}\n"
      "  interval: percentiles of a two-level bootstrap, sizes and then {}s, of n = {} draws, seed {} ({} drawn again "
      "for want of 3 sizes)\n",
      three_digits(fit.law.b_crit), between(b.b_crit), fit.verdict(), fit.data.each, b.draws, fit.seed, b.drawn_again);
  out += fit.left_out ? fmt::format("  with one size left out, each of {} in turn: {} to {}\n", fit.rows.size(),
                                    three_digits(fit.left_out->low), three_digits(fit.left_out->high))
                      : "  with one size left out: n/a, needs 3 sizes to be left\n";
  const auto n = std::count_if(fit.rows.begin(), fit.rows.end(), [](const SizeRow& row) { return !!row.residual; });
  return out + fmt::format("  lack of fit: rms log residual of the {} medians {:.3f}\n", n, fit.lack_of_fit);
}

std::string time_text(const ScalingFit& fit) {
  if (!fit.data.has_seconds) return "";
  if (!fit.time) return "wall clock: n/a, needs seconds at two batch sizes\n";
  const TimeLaw& t = *fit.time;
  std::string out = fmt::format(
      "wall clock: {} takes a + c·B = {:.3g} s + {:.3g} s an example (medians of {} sizes, n = {} {}s), so\n",
      fit.data.cost ? "a cost of 1 an example" : "a step", t.cost.fixed, t.cost.per_example, t.sizes, t.runs,
      fit.data.each);
  if (t.cost.per_example == 0)
    out += "  examples cost nothing at these sizes: the larger the batch, the faster\n";
  else if (t.cost.fixed == 0)
    out += "  a step costs nothing but its examples: the smaller the batch, the faster\n";
  else if (fit.law.end != ScalingLaw::End::none)
    out += "  the fastest size: n/a, the curve of steps does not bend\n";
  else
    out += fmt::format("  T(B) = (Smin + Emin/B)(a + c·B) is least at B* = {}: {}{}\n", three_digits(t.best_batch),
                       seconds_text(t.best_seconds),
                       t.best_batch < t.smallest || t.best_batch > t.largest ? ", outside of the sizes here" : "");
  if (!t.measured) return out + "  measured: at no size did most runs reach the target\n";
  return out + fmt::format("  measured: least median {} at batch {:.0f}, where the law says {} ({:+.1f} %)\n",
                           seconds_text(t.measured_seconds), t.measured_batch, seconds_text(t.predicted_there),
                           100 * (t.predicted_there / t.measured_seconds - 1));
}

// JSON has no infinity.
Json number(double x) { return std::isfinite(x) ? Json(x) : Json(); }
Json bounds_json(const Bounds& bounds) { return {{"low", number(bounds.low)}, {"high", number(bounds.high)}}; }

Json seconds_json(const SizeRow& row) {
  if (!row.seconds) return {};
  return {{"median", number(*row.seconds)},
          {"low", row.seconds_interval ? number(row.seconds_interval->low) : Json()},
          {"high", row.seconds_interval ? number(row.seconds_interval->high) : Json()}};
}

Json row_json(const SizeRow& row) {
  return {{"batch", row.batch},
          {"n", row.n},
          {"reached", row.reached},
          {"median", number(row.median)},
          {"low", row.interval ? number(row.interval->low) : Json()},
          {"high", row.interval ? number(row.interval->high) : Json()},
          {"fitted", number(row.fitted)},
          {"log_residual", row.residual ? Json(*row.residual) : Json()},
          {"seconds", seconds_json(row)}};
}

Json time_json(const TimeLaw& t, const ScalingLaw& law) {
  const bool bends = law.end == ScalingLaw::End::none;
  return {{"a_seconds", t.cost.fixed},
          {"c_seconds_per_example", t.cost.per_example},
          {"runs", t.runs},
          {"best_batch", bends ? number(t.best_batch) : Json()},
          {"best_seconds", bends ? number(t.best_seconds) : Json()},
          {"measured_batch", t.measured ? Json(t.measured_batch) : Json()},
          {"measured_seconds", t.measured ? Json(t.measured_seconds) : Json()},
          {"predicted_seconds_there", t.measured ? Json(t.predicted_there) : Json()}};
}

}  // namespace

Json fit_json(const ScalingFit& fit) {
  const Bootstrap& b = fit.bootstrap;
  const CriticalSizes sizes = critical_sizes(fit.law.b_crit);
  Json out = {
      {"b_crit", {{"value", number(fit.law.b_crit)}, {"low", number(b.b_crit.low)}, {"high", number(b.b_crit.high)}}},
      {"smin", fit.law.smin},
      {"emin", fit.law.emin()},
      {"smin_interval", bounds_json(b.smin)},
      {"emin_interval", bounds_json(b.emin)},
      {"unit", fit.data.cost ? "cost" : "steps"},
      {"sigma", fit.law.sigma},
      {"n", fit.data.runs.size()},
      {"reached", fit.reached()},
      {"bootstrap", {{"draws", b.draws}, {"seed", fit.seed}, {"drawn_again", b.drawn_again}}},
      {"leave_one_out", fit.left_out ? bounds_json(*fit.left_out) : Json()},
      {"lack_of_fit", fit.lack_of_fit},
      {"verdict", fit.verdict()},
      {"at_least", fit.sides.above ? Json() : number(b.at_least)},
      {"at_most", fit.sides.below ? Json() : number(b.at_most)},
      {"definitions",
       {{"half_efficient", number(sizes.half_efficient)},
        {"fifth_more_examples", number(sizes.fifth_more)},
        {"ninety_percent_efficient", number(sizes.ninety_efficient)},
        {"within_tenth_of_smin", number(sizes.near_smin)}}},
      {"wall_clock", fit.time ? time_json(*fit.time, fit.law) : Json()},
      {"warnings", fit.warnings()},
      {"rows", Json::array()},
      {"band", Json::array()}};
  for (const SizeRow& row : fit.rows) out["rows"].push_back(row_json(row));
  for (const auto& [batch, steps] : b.band)
    out["band"].push_back({{"batch", batch}, {"low", number(steps.low)}, {"high", number(steps.high)}});
  return out;
}

std::string fit_text(const ScalingFit& fit) {
  std::string out = fmt::format("{} {}s at {} batch sizes, {} reached the target\n", fit.data.runs.size(),
                                fit.data.each, fit.rows.size(), fit.reached());
  out += table(fit) + law_text(fit) + b_crit_text(fit) + definitions(fit.law.b_crit) + time_text(fit);
  for (const std::string& warning : fit.warnings()) out += "warning: " + warning + "\n";
  return out;
}

}  // namespace tapedeck
