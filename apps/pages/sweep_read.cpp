#include "apps/pages/sweep_read.h"

#include <fmt/format.h>

#include <map>

#include "apps/scaling_fit.h"
#include "apps/stats.h"

namespace tapedeck {

const Json& part_of(const Json& document, JsonPath path) {
  static const Json nothing;
  const Json* at = &document;
  for (const char* name : path) {
    if (!at->is_object()) return nothing;
    const auto found = at->find(name);
    if (found == at->end()) return nothing;
    at = &*found;
  }
  return *at;
}

const Json& list_in(const Json& document, JsonPath path) {
  static const Json nothing = Json::array();
  const Json& part = part_of(document, path);
  return part.is_array() ? part : nothing;
}

double number_in(const Json& document, JsonPath path) {
  const Json& part = part_of(document, path);
  const double value = part.is_number() ? part.get<double>() : NAN;
  return std::isfinite(value) ? value : NAN;
}

std::string text_in(const Json& document, JsonPath path) {
  const Json& part = part_of(document, path);
  return part.is_string() ? part.get<std::string>() : "";
}

bool is_true(const Json& document, JsonPath path) {
  const Json& part = part_of(document, path);
  return part.is_boolean() && part.get<bool>();
}

double above_zero(double x) { return x > 0 ? x : NAN; }

Middle middle_in(const Json& object) {
  if (!object.is_object()) return {};
  Middle out{number_in(object, {"median"}), number_in(object, {"low"}), number_in(object, {"high"})};
  if (std::isnan(out.median)) out.median = INFINITY;
  if (!std::isnan(out.low) && std::isnan(out.high)) out.high = INFINITY;
  return out;
}

LawFigures::LawFigures(const Json& fit)
    : smin(number_in(fit, {"smin"})),
      emin(number_in(fit, {"emin"})),
      b_crit(above_zero(number_in(fit, {"b_crit", "value"}))),
      low(number_in(fit, {"b_crit", "low"})),
      high(number_in(fit, {"b_crit", "high"})),
      fixed(number_in(fit, {"wall_clock", "a_seconds"})),
      per_example(number_in(fit, {"wall_clock", "c_seconds_per_example"})),
      best_batch(above_zero(number_in(fit, {"wall_clock", "best_batch"}))),
      measured_batch(above_zero(number_in(fit, {"wall_clock", "measured_batch"}))) {
  if (!there()) return;
  if (std::isnan(low)) low = std::isnan(b_crit) && std::isnan(high) ? NAN : 0;
  if (std::isnan(high)) high = std::isnan(low) ? NAN : INFINITY;
}

std::string why_untimed(const Json& summary) {
  const std::string why = text_in(summary, {"why_not_timed"});
  return why.empty() ? "why is not recorded" : why;
}

bool is_horizon(const Json& summary) { return text_in(summary, {"kind"}) == "fixed horizon"; }

HorizonRange range_in(const Json& interval) {
  return {number_in(interval, {"failed"}), number_in(interval, {"passed"})};
}

HorizonRange range_at(const Json& size, double target) {
  const Json& all = list_in(size, {"horizon_intervals"});
  for (const Json& interval : all)
    if (number_in(interval, {"target"}) == target) return range_in(interval);
  return range_in(std::isnan(target) && !all.empty() ? all.back() : Json());
}

std::string HorizonRange::text() const {
  if (std::isnan(failed) || (std::isnan(passed) && failed == 0)) return "n/a";
  if (std::isnan(passed)) return "more than " + digits(failed);
  return fmt::format("({}, {}]", digits(failed), digits(passed));
}

std::string places_in(const Json& twice) {
  const double places = std::abs(number_in(twice, {"places"}));
  if (std::isnan(places)) return "an unknown number of places";
  return (is_true(twice, {"at_least"}) ? "at least " : "") + times(places, "place") + " of √2";
}

// A run counts at the end of the K that passed, and of those below that failed; longer ones only showed the way.
static std::vector<CountedRun> runs_of_horizons(const Json& summary, double target) {
  std::map<double, HorizonRange> sizes;
  for (const Json& size : list_in(summary, {"sizes"}))
    sizes.insert_or_assign(number_in(size, {"batch"}), range_at(size, target));
  std::vector<CountedRun> out;
  for (const Json& cell : list_in(summary, {"cells"})) {
    const double batch = number_in(cell, {"batch"}), steps = number_in(cell, {"steps_cap"});
    const auto at = sizes.find(batch);
    if (text_in(cell, {"purpose"}) != "run" || text_in(cell, {"status"}) == "failed" || at == sizes.end()) continue;
    const HorizonRange& range = at->second;
    if (!(batch > 0) || (steps != range.passed && !(steps <= range.failed))) continue;
    const bool passed = steps == range.passed;
    out.push_back({passed ? CountedRun::End::reached : CountedRun::End::missed, batch, number_in(cell, {"seed"}), steps,
                   batch * steps, passed ? number_in(cell, {"train_seconds"}) : NAN,
                   number_in(cell, {"noise_scale", "value"}),
                   fmt::format("batch {}, seed {}: one of the runs of {} steps, which {}", digits(batch),
                               digits(number_in(cell, {"seed"})), digits(steps), passed ? "pass" : "do not pass")});
  }
  return out;
}

// Null where there is none.
static const Json& crossing_at(const Json& cell, double target) {
  static const Json nothing;
  const Json& crossings = list_in(cell, {"crossings"});
  for (const Json& at : crossings)
    if (number_in(at, {"target"}) == target) return at;
  return std::isnan(target) && !crossings.empty() ? crossings.back() : nothing;
}

std::vector<CountedRun> counted_runs(const Json& summary, double target) {
  if (is_horizon(summary)) return runs_of_horizons(summary, target);
  using End = CountedRun::End;
  std::vector<CountedRun> out;
  for (const Json& cell : list_in(summary, {"cells"})) {
    const std::string purpose = text_in(cell, {"purpose"}), status = text_in(cell, {"status"});
    if (purpose != "run" || status == "failed") continue;
    const Json& at = crossing_at(cell, target);
    CountedRun run{End::missed,
                   number_in(cell, {"batch"}),
                   number_in(cell, {"seed"}),
                   number_in(cell, {"steps"}),
                   number_in(cell, {"examples"}),
                   number_in(cell, {"train_seconds"}),
                   number_in(cell, {"noise_scale", "value"}),
                   ""};
    if (!(run.batch > 0)) continue;
    std::string how = fmt::format("missed by step {}", digits(run.steps));
    if (is_true(at, {"reached"})) {
      run.end = End::reached;
      run.steps = number_in(at, {"step"}), run.examples = number_in(at, {"examples"});
      run.seconds = number_in(at, {"seconds"});
      how = fmt::format("reached at step {}, {} examples, {}", digits(run.steps), digits(run.examples),
                        time_text(run.seconds));
    } else if (status == "diverged") {
      run.end = End::diverged;
      how = fmt::format("diverged at step {}", digits(run.steps));
    }
    run.title = fmt::format("batch {}, seed {}: {}", digits(run.batch), digits(run.seed), how);
    out.push_back(std::move(run));
  }
  return out;
}

std::string digits(double x) {
  if (std::isnan(x)) return "n/a";
  if (std::isinf(x)) return "without end";
  if (x == std::floor(x) && std::abs(x) < 1e7) return fmt::format("{:.0f}", x);
  return three_digits(x);
}

std::string range_text(double low, double high) {
  if (std::isnan(low) || std::isnan(high)) return "";
  return fmt::format("{} to {}", digits(low), std::isinf(high) ? "no end" : digits(high));
}

std::string time_text(double seconds) {
  if (std::isnan(seconds)) return "n/a";
  return seconds < 0.1 ? fmt::format("{} ms", digits(1000 * seconds)) : seconds_text(seconds);
}

std::string times(double n, const char* one, const char* many) {
  if (n == 1) return fmt::format("1 {}", one);
  const std::string count = std::isnan(n) ? "n/a" : fmt::format("{:.0f}", n);
  return *many ? fmt::format("{} {}", count, many) : fmt::format("{} {}s", count, one);
}

}  // namespace tapedeck
