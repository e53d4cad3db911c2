// What the pages of a sweep and of a fit read off their documents, in which everything may be null, missing or of
// another kind: a sweep may have ended anywhere, and infinity is null in JSON.
#pragma once
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/config.h"

namespace tapedeck {

using JsonPath = std::initializer_list<const char*>;
const Json& part_of(const Json& document, JsonPath path);  // null where one of the names is not there
const Json& list_in(const Json& document, JsonPath path);  // its array, or an empty one
double number_in(const Json& document, JsonPath path);     // NaN where there is no finite number
std::string text_in(const Json& document, JsonPath path);  // "" where there is no text
bool is_true(const Json& document, JsonPath path);         // false where there is no truth
double above_zero(double x);                               // NaN where it is not

struct Middle {  // a median over runs: infinite where most missed, NaN where none is known
  double median = NAN;
  double low = NAN, high = NAN;  // exact interval; NaN: none
  bool there() const { return !std::isnan(median); }
};
// Of {"median", "low", "high"}. Null ends of what is there are infinite, unless both are: then there is no interval.
Middle middle_in(const Json& object);

struct LawFigures {  // of fit_json(); NaN for what is not there
  explicit LawFigures(const Json& fit);
  double smin, emin, b_crit, low, high;  // B_crit with its interval; an end may be 0 or infinite
  double fixed, per_example;             // seconds of a step: a + c·B
  double best_batch, measured_batch;
  bool there() const { return smin > 0 && emin >= 0; }
  bool timed() const { return there() && fixed >= 0 && per_example >= 0 && fixed + per_example > 0; }
  double steps(double batch) const { return smin + emin / batch; }
  double examples(double batch) const { return emin + smin * batch; }
  double seconds_a_step(double batch) const { return fixed + per_example * batch; }
  double seconds(double batch) const { return timed() ? steps(batch) * seconds_a_step(batch) : NAN; }
};

std::string why_untimed(const Json& summary);  // of a sweep whose seconds are not compared
bool is_horizon(const Json& summary);          // of a sweep with fixed horizons

struct HorizonRange {        // the fewest steps lie in (failed, passed]
  double failed, passed;     // NaN: not known, and no K that was tried
  std::string text() const;  // "(28, 39]", "more than 512", "n/a"
};
HorizonRange range_in(const Json& interval);
HorizonRange range_at(const Json& size, double target = NAN);  // NaN: the tightest
std::string places_in(const Json& twice);  // of {"again": {"horizons"}}: "1 place of √2", "at least 3 places of √2"

// A run that the report counts (neither pilot nor tuning), at a target.
struct CountedRun {
  enum class End : uint8_t { reached, missed, diverged };
  End end;
  double batch, seed;
  double steps, examples, seconds;  // at the crossing; of a run that did not reach it, how far it came
  double noise;                     // its noise scale, where that is resolved
  std::string title;                // "seed 3: reached at step 120"
};
std::vector<CountedRun> counted_runs(const Json& summary, double target = NAN);  // NaN: the tightest

std::string digits(double x);                                         // "79.4", "n/a", "without end"
std::string range_text(double low, double high);                      // "45.4 to 185"; "" where there is none
std::string time_text(double seconds);                                // "1.23 s", "n/a", "not reached"
std::string times(double n, const char* one, const char* many = "");  // "1 run", "3 runs"

}  // namespace tapedeck
