#include "apps/pages/sweep_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/pages/axis.h"
#include "apps/pages/html.h"

namespace tapedeck {
namespace {

TableCell number(std::string text) { return number_cell(std::move(text)); }
TableCell number(double x) { return number_cell(digits(x)); }

std::string median_text(const Middle& m) {
  return !m.there() ? "n/a" : std::isinf(m.median) ? "not reached" : digits(m.median);
}

std::string with_interval(const Middle& m) {
  if (!m.there()) return "n/a";
  if (std::isnan(m.low)) return median_text(m);
  return fmt::format("{} [{}, {}]", median_text(m), digits(m.low), std::isinf(m.high) ? "not reached" : digits(m.high));
}

std::string rule_text(const Json& rule) {
  const double share = number_in(rule, {"efficiency"});
  if (std::isnan(share)) return "n/a";
  return fmt::format("{}{:.0f} %", is_true(rule, {"at_most"}) ? "≤ " : "", 100 * share);
}

std::string failures(const Json& size) {
  std::string out;
  for (const char* kind : {"missed", "diverged", "failed"})
    if (const double n = number_in(size, {kind}); n > 0)
      out += fmt::format("{}{:.0f} {}", out.empty() ? "" : ", ", n, kind);
  return out.empty() ? "none" : out;
}

std::string rate_text(const Json& size) {
  const double rate = number_in(size, {"rate"});
  if (std::isnan(rate)) return "none";
  const std::string edge = text_in(size, {"edge"});
  return short_number(rate) + (edge.empty() ? "" : fmt::format(" (at the {} edge)", edge));
}

}  // namespace

std::string sizes_table(const Json& summary) {
  const bool timed = is_true(summary, {"timed"});
  const bool horizon = is_horizon(summary);
  Table table{{"batch", "rate", "reached", horizon ? "steps, fewest" : "steps, median",
               horizon ? "examples" : "examples, median", "seconds, median", "ERT", "linear rule", "square-root rule",
               "failures"},
              {}};
  std::string reasons;
  for (const Json& size : list_in(summary, {"sizes"})) {
    const Middle seconds = middle_in(part_of(size, {"seconds"}));
    table.rows.push_back(
        {number(number_in(size, {"batch"})),
         number(rate_text(size)),
         number(fmt::format("{} of {}", digits(number_in(size, {"reached"})), digits(number_in(size, {"n"})))),
         number(horizon ? range_at(size).text() : with_interval(middle_in(part_of(size, {"steps"})))),
         number(with_interval(middle_in(part_of(size, {"examples"})))),
         number(!timed || !seconds.there()   ? "n/a"
                : std::isinf(seconds.median) ? "not reached"
                                             : time_text(seconds.median)),
         number(timed ? time_text(number_in(size, {"ert_seconds"})) : "n/a"),
         number(rule_text(part_of(size, {"rules", "linear"}))),
         number(rule_text(part_of(size, {"rules", "square root"}))),
         {failures(size)}});
    if (const std::string why = text_in(size, {"why_no_rate"}); !why.empty())
      reasons += paragraph(fmt::format("Batch {}: {}.", digits(number_in(size, {"batch"})), why), "warn");
  }
  if (table.rows.empty()) return paragraph("No size has been measured yet.");
  const char* const horizons =
      "All runs of a K pass together, or none. Steps: more than the K that failed, at most the K that passed, and the "
      "law "
      "is one of the middles of these intervals; examples and seconds are those of the K that passed. ERT: seconds of "
      "its runs over their number. The rules of rates are not judged: every rate was tried with the same number of "
      "steps.";
  return html_table(
             table,
             horizon
                 ? horizons
                 : "Medians over the runs of a size, those that missed counted as infinite, with exact 95 % intervals "
                   "(none for n <= 5). ERT: seconds of all runs over the number that reached. Rules: what is left "
                   "of the efficiency where the rate follows B or its square root instead of being tuned, a ratio of "
                   "medians of a few trials, without an interval.") +
         reasons;
}

std::string cells_table(const Json& summary) {
  const Json& cells = list_in(summary, {"cells"});
  if (cells.empty()) return "";
  Table table{{"purpose", "batch", "rate", "seed", "end", "step", "examples", "seconds", "noise scale"}, {}};
  for (const Json& cell : cells) {
    const Json& crossings = list_in(cell, {"crossings"});
    const Json& at = crossings.empty() ? Json() : crossings.back();
    const Json& from = is_true(at, {"reached"}) ? at : cell;
    const char* step = is_true(at, {"reached"}) ? "step" : "steps";
    const char* seconds = is_true(at, {"reached"}) ? "seconds" : "train_seconds";
    table.rows.push_back({{text_in(cell, {"purpose"})},
                          number(number_in(cell, {"batch"})),
                          number(short_number(number_in(cell, {"rate"}))),
                          number(number_in(cell, {"seed"})),
                          {text_in(cell, {"status"})},
                          number(number_in(from, {step})),
                          number(number_in(from, {"examples"})),
                          number(time_text(number_in(from, {seconds}))),
                          number(number_in(cell, {"noise_scale", "value"}))});
  }
  return details(fmt::format("All {}", times(static_cast<double>(cells.size()), "cell")),
                 html_table(table, "Step, examples and seconds: at the tightest target, else where the run ended."));
}

std::string broken_cells(const Json& summary) {
  std::string lines;
  double n = 0;
  for (const Json& cell : list_in(summary, {"cells"})) {
    const std::string status = text_in(cell, {"status"}), reason = text_in(cell, {"reason"});
    if (status != "diverged" && status != "failed") continue;
    ++n;
    lines += fmt::format("<li>{} {}: {}</li>\n", html_text(text_in(cell, {"id"})), html_text(status),
                         html_text(reason.empty() ? "no reason is recorded" : reason));
  }
  if (n == 0) return paragraph("No cell diverged or failed.");
  const std::string list = "<ul class=\"rules note\">\n" + lines + "</ul>\n";
  return n <= 12 ? list : details(times(n, "cell") + " that diverged or failed", list);
}

std::string again_words(const Json& summary) {
  const double batch = number_in(summary, {"again", "batch"}), ratio = number_in(summary, {"again", "steps", "ratio"});
  if (std::isnan(batch)) return paragraph("No size was to run twice.");
  if (is_horizon(summary)) return searched_twice_words(summary);
  if (std::isnan(ratio))
    return paragraph(fmt::format(
        "Batch {} was to run twice: {} of {} and {} of {} runs reached the target. To compare them all are wanted, and "
        "2 of each.",
        digits(batch), digits(number_in(summary, {"again", "reached"})), digits(number_in(summary, {"again", "n"})),
        digits(number_in(summary, {"again", "reached_again"})), digits(number_in(summary, {"again", "n_again"}))));
  const auto words = [&](const char* what) {
    const Json& of = part_of(summary, {"again", what});
    return fmt::format("{} {} [{}, {}]", what, digits(number_in(of, {"ratio"})), digits(number_in(of, {"low"})),
                       digits(number_in(of, {"high"})));
  };
  const bool covers = is_true(summary, {"again", "covers_one"});
  std::string out = fmt::format("Batch {} ran twice, with n = {} and {} other seeds: the ratio of {}", digits(batch),
                                digits(number_in(summary, {"again", "n"})),
                                digits(number_in(summary, {"again", "n_again"})), words("steps"));
  if (!std::isnan(number_in(summary, {"again", "seconds", "ratio"}))) out += ", of " + words("seconds");
  out += covers ? ". The 95 % interval of steps covers 1, as it should: no difference is shown."
                : ". The 95 % interval of steps does not cover 1: the same size differs from itself here, as it does "
                  "by chance in one sweep of 20.";
  return paragraph(out, covers ? "" : "warn");
}

std::string four_definitions(const Json& fit) {
  if (std::isnan(LawFigures(fit).b_crit))
    return paragraph("There is no critical size: no law, or one that does not bend.");
  const auto size = [&](const char* name) { return digits(number_in(fit, {"definitions", name})); };
  return paragraph("Critical sizes by four definitions, on the same curve:", "note") +
         facts({{size("ninety_percent_efficient"), "B_crit/9: 90 % of the examples are not wasted"},
                {size("fifth_more_examples"), "B_crit/5: 20 % more examples than Emin"},
                {size("half_efficient"), "B_crit: twice Emin, twice Smin"},
                {size("within_tenth_of_smin"), "10 B_crit: 10 % more steps than Smin"}});
}

std::string fit_warnings(const Json& fit) {
  std::string out;
  for (const Json& warning : list_in(fit, {"warnings"}))
    if (warning.is_string()) out += paragraph("Warning: " + warning.get<std::string>() + ".", "warn");
  return out;
}

std::string rows_table(const Json& fit) {
  Table table{{"batch", "n", "reached", "median", "fitted", "off by"}, {}};
  for (const Json& row : list_in(fit, {"rows"})) {
    const double off = number_in(row, {"log_residual"});
    table.rows.push_back({number(number_in(row, {"batch"})), number(number_in(row, {"n"})),
                          number(number_in(row, {"reached"})), number(with_interval(middle_in(row))),
                          number(number_in(row, {"fitted"})),
                          number(std::isnan(off) ? "n/a" : fmt::format("{:+.1f} %", 100 * std::expm1(off)))});
  }
  if (table.rows.empty()) return "";
  return html_table(table, "Medians with exact 95 % intervals (none for n <= 5) against the law.");
}

std::string law_facts(const Json& fit) {
  const LawFigures law(fit);
  if (!law.there()) return "";
  const auto with_range = [&](double value, const char* interval) {
    const double low = number_in(fit, {interval, "low"}), high = number_in(fit, {interval, "high"});
    return digits(value) +
           (std::isnan(low) ? ""
                            : fmt::format(", 95 % interval {}", range_text(low, std::isnan(high) ? INFINITY : high)));
  };
  std::vector<std::pair<std::string, std::string>> rows = {
      {"law",
       "S(B) = Smin + Emin/B by maximum likelihood, log S normal around it; runs that missed count as intervals "
       "without end"},
      {"runs", fmt::format("{}, of which {} reached the target", digits(number_in(fit, {"n"})),
                           digits(number_in(fit, {"reached"})))},
      {"Smin", with_range(law.smin, "smin_interval")},
      {"Emin", with_range(law.emin, "emin_interval")},
      {"B_crit = Emin/Smin",
       digits(law.b_crit) + (std::isnan(law.low) ? "" : ", 95 % interval " + range_text(law.low, law.high))},
      {"verdict", text_in(fit, {"verdict"})},
      {"spread of log S", digits(number_in(fit, {"sigma"}))},
      {"lack of fit", digits(number_in(fit, {"lack_of_fit"})) + ", rms log residual of the medians"},
      {"bootstrap",
       fmt::format("{} draws of sizes and then of runs, seed {}; {} drawn again",
                   digits(number_in(fit, {"bootstrap", "draws"})), digits(number_in(fit, {"bootstrap", "seed"})),
                   digits(number_in(fit, {"bootstrap", "drawn_again"})))}};
  const double low = number_in(fit, {"leave_one_out", "low"}), high = number_in(fit, {"leave_one_out", "high"});
  if (!std::isnan(low))
    rows.emplace_back("one size left out", "B_crit from " + range_text(low, std::isnan(high) ? INFINITY : high));
  if (const double least = number_in(fit, {"at_least"}); !std::isnan(least))
    rows.emplace_back("bound", fmt::format("B_crit is at least {} (one-sided, 95 %)", digits(least)));
  if (const double most = number_in(fit, {"at_most"}); !std::isnan(most))
    rows.emplace_back("bound", fmt::format("B_crit is at most {} (one-sided, 95 %)", digits(most)));
  return facts(rows);
}

}  // namespace tapedeck
