#include "apps/pages/sweeps_page.h"

#include <fmt/format.h>

#include <set>

#include "apps/pages/axis.h"
#include "apps/pages/run_page.h"
#include "apps/pages/sweep_page.h"

namespace tapedeck {
namespace {

std::string bracket(double low, double high) {
  return std::isnan(low) ? "" : fmt::format(" [{}, {}]", digits(low), std::isinf(high) ? "no end" : digits(high));
}

std::string b_crit_text(const LawFigures& law) {  // a law that does not bend has none
  return (std::isnan(law.b_crit) ? "none" : digits(law.b_crit)) + bracket(law.low, law.high);
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

// "7 of 7 runs" reached the target at a size.
std::string counts_text(const Json& fit, double batch) {
  for (const Json& row : list_in(fit, {"rows"}))
    if (number_in(row, {"batch"}) == batch)
      return fmt::format(", {} of {}", digits(number_in(row, {"reached"})), digits(number_in(row, {"n"})));
  return "";
}

std::string runs_text(const Json& fit) {
  return fmt::format("{} of {} at {} sizes", digits(number_in(fit, {"reached"})), digits(number_in(fit, {"n"})),
                     list_in(fit, {"rows"}).size());
}

std::string steps_text(const std::map<double, Middle>& steps, double batch, bool horizon) {
  const auto found = steps.find(batch);
  if (found == steps.end() || !found->second.there()) return "not run";
  const Middle& m = found->second;
  if (horizon) return HorizonRange{m.low, m.high}.text();
  return std::isinf(m.median) ? "not reached" : digits(m.median) + bracket(m.low, m.high);
}

// Of the steps at a size, where every run of both reached the target.
std::string ratio_text(const std::map<double, std::vector<double>>& own,
                       const std::map<double, std::vector<double>>& first, double batch) {
  const auto a = own.find(batch), b = first.find(batch);
  if (a == own.end() || b == first.end()) return "n/a";
  const auto ratio = unpaired_ratio(a->second, b->second);
  return ratio ? with_interval({ratio->ratio, ratio->low, ratio->high}) : "n/a";
}

// A size a row: the steps of each sweep, and those of each other one over the first's.
std::string sizes_side_by_side(const Sweeps& sweeps, double target) {
  const bool horizon = is_horizon(sweeps.front().summary);
  Table table{{"batch"}, {}};
  std::set<double> batches;
  std::vector<std::map<double, Middle>> steps;
  std::vector<std::map<double, std::vector<double>>> runs;
  for (size_t i = 0; i < sweeps.size(); ++i) {
    table.columns.push_back("steps, " + sweep_name(sweeps, i));
    steps.push_back(steps_at(sweeps[i], target));
    runs.push_back(steps_by_size(sweeps[i], target));
    for (const auto& [batch, m] : steps.back()) batches.insert(batch);
  }
  for (size_t i = 1; i < sweeps.size() && !horizon; ++i)
    table.columns.push_back(fmt::format("{} over {}", sweep_name(sweeps, i), sweep_name(sweeps, 0)));
  for (const double batch : batches) {
    std::vector<TableCell> row = {number_cell(digits(batch))};
    for (size_t i = 0; i < sweeps.size(); ++i)
      row.push_back(number_cell(steps_text(steps[i], batch, horizon) +
                                (horizon ? "" : counts_text(fit_at(sweeps[i], target), batch))));
    for (size_t i = 1; i < sweeps.size() && !horizon; ++i)
      row.push_back(number_cell(ratio_text(runs[i], runs[0], batch)));
    table.rows.push_back(std::move(row));
  }
  return html_table(table,
                    horizon ? "More steps than the K that failed, at most those of the K that passed. All runs of a K "
                              "give one number together, and of one number each there is no interval of a ratio."
                            : "Medians with exact 95 % intervals (none for n <= 5), and how many runs reached the "
                              "target. Over: ratio of the geometric means "
                              "with Welch's 95 % interval, of sizes where every run of both reached the target.");
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
    const Json &own_fit = fit_at(sweeps[i], target), &first_fit = fit_at(sweeps.front(), target);
    const auto own = b_crit_of(own_fit), first = b_crit_of(first_fit);
    if (!ratio) {
      out.push_back(fmt::format("{} and {} cannot be compared {}: {} no B_crit with an interval.",
                                sweep_name(sweeps, i), sweep_name(sweeps, 0), at,
                                own     ? sweep_name(sweeps, 0) + " has"
                                : first ? sweep_name(sweeps, i) + " has"
                                        : "both have"));
      continue;
    }
    std::string sentence = fmt::format(
        "The critical batch size of {} is {} times that of {} {} ({} against {} examples, 95 % intervals; {} and {} "
        "reached): {}.",
        sweep_name(sweeps, i), with_interval(*ratio), sweep_name(sweeps, 0), at, with_interval(*own),
        with_interval(*first), runs_text(own_fit), runs_text(first_fit),
        ratio->covers(1)   ? "no difference shown"
        : ratio->value > 1 ? "it is larger"
                           : "it is smaller");
    for (const size_t which : {i, size_t(0)})
      if (const std::string verdict = text_in(fit_at(sweeps[which], target), {"verdict"}); verdict != "determined")
        sentence += fmt::format(" Beware: that of {} is {}.", sweep_name(sweeps, which), verdict);
    out.push_back(sentence);
  }
  return out;
}

Table sweeps_table(const Sweeps& sweeps) {
  Table table{{"target", "sweep", "B_crit", "over the first's", "B_crit/5", "Smin", "Emin", "reached", "verdict"}, {}};
  const CommonTargets common = common_targets(sweeps);
  for (const double target : common.values)
    for (size_t i = 0; i < sweeps.size(); ++i) {
      const Json& fit = fit_at(sweeps[i], target);
      const LawFigures law(fit);
      const auto ratio = over_first(sweeps, i, target);
      table.rows.push_back({number_cell(short_number(target)),
                            {sweep_name(sweeps, i)},
                            number_cell(b_crit_text(law)),
                            number_cell(ratio    ? with_interval(*ratio)
                                        : i == 0 ? "1"
                                                 : "n/a"),
                            number_cell(digits(law.b_crit / 5)),
                            number_cell(with_interval(law.smin, part_of(fit, {"smin_interval"}))),
                            number_cell(with_interval(law.emin, part_of(fit, {"emin_interval"}))),
                            number_cell(runs_text(fit)),
                            {law.there() ? text_in(fit, {"verdict"}) : "no law"}});
    }
  return table;
}

Json sweeps_json(const Sweeps& sweeps) {
  const CommonTargets common = common_targets(sweeps);
  Json out = {{"sweeps", Json::array()},
              {"ratios", Json::array()},
              {"why_none", common.why_none.empty() ? Json() : Json(common.why_none)},
              {"differences", sweep_differences(sweeps)}};
  for (size_t i = 0; i < sweeps.size(); ++i)
    out["sweeps"].push_back({{"name", sweep_name(sweeps, i)}, {"document", sweeps[i].summary}});
  for (const double target : common.values)
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
         number_cell(law.there() ? b_crit_text(law) : "no law"),
         number_cell(digits(law.measured_batch)),
         number_cell(fmt::format("{}", list_in(s, {"cells"}).size()))});
  }
  return table;
}

}  // namespace tapedeck
