#include "apps/pages/sweeps_page.h"

#include <fmt/format.h>

#include <set>

#include "apps/pages/axis.h"
#include "apps/pages/run_page.h"
#include "apps/pages/sweep_page.h"

namespace tapedeck {
namespace {

TableCell number(const std::string& text) { return {.text = text, .number = true}; }

std::string bracket(double low, double high) {
  return std::isnan(low) ? "" : fmt::format(" [{}, {}]", digits(low), std::isinf(high) ? "no end" : digits(high));
}

std::string with_interval(const IntervalEstimate& x) { return digits(x.value) + bracket(x.low, x.high); }

std::string with_interval(double value, const Json& interval) {
  const double low = number_in(interval, {"low"}), high = number_in(interval, {"high"});
  return digits(value) + bracket(low, std::isnan(high) ? INFINITY : high);
}

std::optional<IntervalEstimate> over_first(const Sweeps& sweeps, size_t which, double target) {
  const auto own = b_crit_of(fit_at(sweeps[which], target)), first = b_crit_of(fit_at(sweeps.front(), target));
  if (which == 0 || !own || !first) return std::nullopt;
  return ratio_of_estimates(*own, *first);
}

// A size a row: medians of each sweep, and the first sweep's steps over those of each other.
std::string sizes_side_by_side(const Sweeps& sweeps, double target) {
  Table table{{"batch"}, {}};
  std::set<double> batches;
  std::vector<std::map<double, Middle>> medians(sweeps.size());
  std::vector<std::map<double, std::vector<double>>> steps;
  for (size_t i = 0; i < sweeps.size(); ++i) {
    table.columns.push_back("steps, " + sweep_name(sweeps, i));
    steps.push_back(steps_by_size(sweeps[i], target));
    for (const Json& row : list_in(fit_at(sweeps[i], target), {"rows"}))
      if (const double batch = number_in(row, {"batch"}); batch > 0)
        medians[i][batch] = middle_in(row), batches.insert(batch);
  }
  for (size_t i = 1; i < sweeps.size(); ++i)
    table.columns.push_back(fmt::format("{} over {}", sweep_name(sweeps, 0), sweep_name(sweeps, i)));
  for (const double batch : batches) {
    std::vector<TableCell> row = {number(digits(batch))};
    for (const auto& of_sweep : medians) {
      const auto found = of_sweep.find(batch);
      if (found == of_sweep.end() || !found->second.there())
        row.push_back(number("not run"));
      else if (std::isinf(found->second.median))
        row.push_back(number("not reached"));
      else
        row.push_back(number(digits(found->second.median) + bracket(found->second.low, found->second.high)));
    }
    for (size_t i = 1; i < sweeps.size(); ++i) {
      const auto a = steps[0].find(batch), b = steps[i].find(batch);
      if (a == steps[0].end() || b == steps[i].end()) {
        row.push_back(number("n/a"));
        continue;
      }
      const auto ratio = unpaired_ratio(a->second, b->second);
      row.push_back(number(ratio ? with_interval({ratio->ratio, ratio->low, ratio->high}) : "n/a"));
    }
    table.rows.push_back(std::move(row));
  }
  return html_table(table,
                    "Medians with exact 95 % intervals (none for n <= 5). Over: ratio of the geometric means with "
                    "Welch's 95 % interval, of sizes where every run of both reached the target.");
}

}  // namespace

std::vector<std::string> sweeps_sentences(const Sweeps& sweeps) {
  const CommonTargets common = common_targets(sweeps);
  if (common.values.empty()) return {common.why_none + " Nothing is compared; each keeps a page of its own."};
  const double target = common.values.back();
  std::vector<std::string> out;
  for (size_t i = 1; i < sweeps.size(); ++i) {
    const auto ratio = over_first(sweeps, i, target);
    const std::string at = fmt::format("at a validation {} of {}", common.metric, short_number(target));
    if (!ratio) {
      out.push_back(fmt::format("{} and {} cannot be compared {}: one of them has no B_crit with an interval.",
                                sweep_name(sweeps, i), sweep_name(sweeps, 0), at));
      continue;
    }
    const auto own = b_crit_of(fit_at(sweeps[i], target)), first = b_crit_of(fit_at(sweeps.front(), target));
    out.push_back(
        fmt::format("The critical batch size of {} is {} times that of {} {} ({} against {} examples, 95 % "
                    "intervals): {}.",
                    sweep_name(sweeps, i), with_interval(*ratio), sweep_name(sweeps, 0), at, with_interval(*own),
                    with_interval(*first),
                    ratio->covers(1)   ? "no difference shown"
                    : ratio->value > 1 ? "it is larger"
                                       : "it is smaller"));
  }
  return out;
}

Table sweeps_table(const Sweeps& sweeps) {
  Table table{{"target", "sweep", "B_crit", "over the first's", "B_crit/5", "Smin", "Emin", "verdict"}, {}};
  for (const double target : common_targets(sweeps).values)
    for (size_t i = 0; i < sweeps.size(); ++i) {
      const Json& fit = fit_at(sweeps[i], target);
      const LawFigures law(fit);
      const auto ratio = over_first(sweeps, i, target);
      table.rows.push_back({number(short_number(target)),
                            {sweep_name(sweeps, i)},
                            number(digits(law.b_crit) + bracket(law.low, law.high)),
                            number(ratio    ? with_interval(*ratio)
                                   : i == 0 ? "1"
                                            : "n/a"),
                            number(digits(law.b_crit / 5)),
                            number(with_interval(law.smin, part_of(fit, {"smin_interval"}))),
                            number(with_interval(law.emin, part_of(fit, {"emin_interval"}))),
                            {law.there() ? text_in(fit, {"verdict"}) : "no law"}});
    }
  return table;
}

Json sweeps_json(const Sweeps& sweeps) {
  Json out = {{"sweeps", Json::array()}, {"ratios", Json::array()}, {"differences", sweep_differences(sweeps)}};
  for (size_t i = 0; i < sweeps.size(); ++i)
    out["sweeps"].push_back({{"name", sweep_name(sweeps, i)}, {"document", sweeps[i].summary}});
  for (const double target : common_targets(sweeps).values)
    for (size_t i = 1; i < sweeps.size(); ++i)
      if (const auto ratio = over_first(sweeps, i, target))
        out["ratios"].push_back({{"target", target},
                                 {"sweep", sweep_name(sweeps, i)},
                                 {"over", sweep_name(sweeps, 0)},
                                 {"b_crit", ratio->value},
                                 {"low", ratio->low},
                                 {"high", std::isinf(ratio->high) ? Json() : Json(ratio->high)}});
  return out;
}

std::string sweeps_page(const Sweeps& sweeps) {
  const CommonTargets common = common_targets(sweeps);
  std::string title, body = heading(1, fmt::format("{} sweeps laid over each other", sweeps.size()));
  for (size_t i = 0; i < sweeps.size(); ++i) title += (i ? ", " : "") + sweep_name(sweeps, i);
  for (const std::string& sentence : sweeps_sentences(sweeps)) body += paragraph(sentence, "lead");
  for (const std::string& difference : sweep_differences(sweeps)) body += paragraph(difference, "warn");
  if (!common.values.empty()) {
    std::vector<std::string> figures = sweeps_figures(sweeps, common.values.back());
    body += figures.front();
    figures.erase(figures.begin());
    figures.push_back(sweeps_targets_figure(sweeps, common.values));
    body += beside(figures);
    body += heading(2, "The law of each") +
            html_table(sweeps_table(sweeps),
                       "With 95 % intervals. Over the first's: from both intervals as of independent estimates, in "
                       "logs (Zou & Donner 2008). B_crit/5: up to there a run needs 20 % more examples than Emin at "
                       "most.");
    body += heading(2, "Size by size") + sizes_side_by_side(sweeps, common.values.back());
  }
  if (const Table settings = differing_settings(sweeps); !settings.rows.empty())
    body += heading(2, "Options that differ") + html_table(settings);
  body += heading(2, "Each in its own words");
  for (size_t i = 0; i < sweeps.size(); ++i)
    body += paragraph(sweep_name(sweeps, i) + ": " + text_in(sweeps[i].summary, {"sentence"})) +
            details("Setting of " + sweep_name(sweeps, i),
                    sweep_setting(sweeps[i].summary) + machine_html(sweeps[i].machine));
  return html_page(title, body + footer());
}

Table sweep_list(const Sweeps& sweeps, const std::vector<std::string>& links) {
  Table table{{"sweep", "what", "status", "target", "B_crit", "fastest size", "cells"}, {}};
  for (size_t i = 0; i < sweeps.size(); ++i) {
    const Json& s = sweeps[i].summary;
    const LawFigures law(part_of(s, {"fit"}));
    const Json& fits = list_in(s, {"fits"});
    const double target = fits.empty() ? NAN : number_in(fits.back(), {"target"});
    table.rows.push_back(
        {{.text = sweeps[i].name, .link = i < links.size() ? links[i] : ""},
         {fmt::format("{} on {}, {}, {}", text_in(s, {"model"}), text_in(s, {"data"}), text_in(s, {"optimizer"}),
                      text_in(s, {"precision"}))},
         {text_in(s, {"status"})},
         {std::isnan(target) ? "none" : fmt::format("{} {}", text_in(s, {"targets", "metric"}), short_number(target))},
         number(law.there() ? digits(law.b_crit) + bracket(law.low, law.high) : "no law"),
         number(digits(law.measured_batch)),
         number(fmt::format("{}", list_in(s, {"cells"}).size()))});
  }
  return table;
}

}  // namespace tapedeck
