#include "apps/pages/sweep_page.h"

#include <fmt/format.h>

#include "apps/pages/chart.h"
#include "apps/pages/html.h"
#include "apps/pages/run_page.h"
#include "apps/pages/sweep_charts.h"
#include "apps/pages/sweep_checklist.h"
#include "apps/pages/sweep_tables.h"

namespace tapedeck {
namespace {

std::string tile(const std::string& name, const std::string& value, const std::string& more) {
  return fmt::format("<div class=\"tile\">{}<b>{}</b><span>{}</span></div>\n", html_text(name), html_text(value),
                     html_text(more));
}

std::string interval_of(const Json& fit, const char* name) {
  const double low = number_in(fit, {name, "low"}), high = number_in(fit, {name, "high"});
  if (std::isnan(low)) return "no interval";
  return "95 % interval " + range_text(low, std::isnan(high) ? INFINITY : high);
}

std::string law_tiles(const Json& fit, const std::string& why_none) {
  const LawFigures law(fit);
  if (!law.there()) return tile("B_crit, examples", "no law", why_none.empty() ? "too few runs" : "why is said below");
  const std::string range = range_text(law.low, law.high);
  std::string out =
      tile("B_crit, examples", std::isnan(law.b_crit) ? "none" : digits(law.b_crit),
           fmt::format("{}; {}", range.empty() ? "no interval" : "95 % interval " + range, text_in(fit, {"verdict"})));
  const bool cost = text_in(fit, {"unit"}) == "cost";
  out += tile(cost ? "Smin, cost an example" : "Smin, steps", digits(law.smin), interval_of(fit, "smin_interval"));
  return out + tile(cost ? "Emin, cost" : "Emin, examples", digits(law.emin), interval_of(fit, "emin_interval"));
}

std::string time_tile(const Json& fit) {
  const LawFigures law(fit);
  if (std::isnan(law.measured_batch) && std::isnan(law.best_batch)) return "";
  const std::string predicted = std::isnan(law.best_batch)
                                    ? "the law names none"
                                    : fmt::format("by the law B* = {}: {}", digits(law.best_batch),
                                                  time_text(number_in(fit, {"wall_clock", "best_seconds"})));
  if (std::isnan(law.measured_batch)) return tile("fastest size", "not measured", predicted);
  return tile("fastest size, measured", "batch " + digits(law.measured_batch),
              fmt::format("median {}; {}", time_text(number_in(fit, {"wall_clock", "measured_seconds"})), predicted));
}

std::string cells_tile(const Json& summary) {
  const Json& cells = list_in(summary, {"cells"});
  double reached = 0;
  for (const Json& cell : cells) reached += text_in(cell, {"status"}) == "reached";
  const std::string status = text_in(summary, {"status"});
  return tile("cells", fmt::format("{}", cells.size()),
              fmt::format("{}; {}{} in all", status.empty() ? "state unknown" : status,
                          is_horizon(summary) ? "" : fmt::format("{:.0f} reached the target, ", reached),
                          time_text(number_in(summary, {"time", "cells_seconds"}))));
}

std::string looser_laws(const Json& summary) {
  const Json& fits = list_in(summary, {"fits"});
  if (fits.size() < 2) return "";
  Table table{{"target", "B_crit", "95 % interval", "Smin", "Emin", "verdict"}, {}};
  for (const Json& entry : fits) {
    const Json& fit = part_of(entry, {"fit"});
    const LawFigures law(fit);
    table.rows.push_back({number_cell(short_number(number_in(entry, {"target"}))),
                          number_cell(digits(law.b_crit)),
                          number_cell(range_text(law.low, law.high)),
                          number_cell(digits(law.smin)),
                          number_cell(digits(law.emin)),
                          {law.there() ? text_in(fit, {"verdict"}) : "no law: " + text_in(entry, {"why_none"})}});
  }
  return html_table(table, "The law for each target, the loosest first.");
}

}  // namespace

std::string sweep_setting(const Json& summary) {
  std::vector<std::pair<std::string, std::string>> rows;
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty() && value != "n/a") rows.emplace_back(name, std::move(value));
  };
  for (const char* key : {"model", "data", "device", "precision", "optimizer", "schedule", "preset", "kind"})
    add(key, text_in(summary, {key}));
  for (const char* key : {"parameters", "threads", "seed"}) add(key, digits(number_in(summary, {key})));
  add("training examples", digits(number_in(summary, {"train_examples"})));
  std::string values;
  for (const Json& value : list_in(summary, {"targets", "values"}))
    if (value.is_number()) values += (values.empty() ? "" : ", ") + short_number(value.get<double>());
  if (!values.empty()) {
    const std::string source = text_in(summary, {"targets", "source"}), pilot = text_in(summary, {"targets", "pilot"});
    add("targets", fmt::format("validation {} {}, {}{}, hash {}", text_in(summary, {"targets", "metric"}), values,
                               source == "given" ? "given" : "at the knee of the pilot's curve",
                               pilot.empty() ? "" : " (" + pilot + ")", text_in(summary, {"targets", "hash"})));
  }
  add("rates", fmt::format("the pilot began at {}, batch {}; grids centred on ε*/(1 + B*/B)^{}",
                           short_number(number_in(summary, {"base", "rate"})),
                           digits(number_in(summary, {"base", "reference_batch"})),
                           digits(number_in(summary, {"base", "alpha"}))));
  add("seeds",
      fmt::format("{} a size in the report, {} a rate in tuning", digits(number_in(summary, {"base", "seeds"})),
                  digits(number_in(summary, {"base", "tuning_seeds"}))));
  return facts(rows);
}

std::string sweep_page(const Json& summary, const Json& machine) {
  const Json& fit = part_of(summary, {"fit"});
  const Json& fits = list_in(summary, {"fits"});
  const std::string why_none = fits.empty() ? "" : text_in(fits.back(), {"why_none"});
  const std::string title =
      fmt::format("Sweep of batch sizes: {} on {}", text_in(summary, {"model"}), text_in(summary, {"data"}));
  const std::vector<SizeMiddle> sizes = middles_of_sweep(summary);
  const std::vector<CountedRun> runs = counted_runs(summary);

  std::string body = heading(1, title) + paragraph(text_in(summary, {"sentence"}), "lead");
  if (text_in(summary, {"status"}) != "complete")
    body += paragraph("The sweep is incomplete: what is here may change. The same command goes on with it.", "warn");
  body += "<div class=\"tiles\">\n" + law_tiles(fit, why_none) + time_tile(fit) + cells_tile(summary) + "</div>\n";
  body += fit_warnings(fit);
  if (!why_none.empty()) body += paragraph("No law: " + why_none, "warn");
  body += chart_figure(steps_chart(sizes, runs, fit));
  body += beside({chart_figure(examples_chart(sizes, runs, fit)), time_figure(summary), step_time_figure(summary),
                  rate_figure(summary), noise_figure(summary), targets_figure(summary)});
  body += heading(2, "Rates") + rate_map_figure(summary);
  body += heading(2, "Sizes") + sizes_table(summary) + horizons_table(summary);
  body += heading(2, "The law") + law_facts(fit) + four_definitions(fit) + looser_laws(summary);
  body += heading(2, "The same size twice") + again_words(summary);
  body += heading(2, "Cells") + broken_cells(summary) + cells_table(summary);
  body += heading(2, "Checklist") + checklist_html(sweep_checklist(summary, machine));
  body += heading(2, "Provenance") + sweep_setting(summary) + machine_html(machine);
  return html_page(title, body + footer());
}

std::string fit_sentence(const Json& document) {
  const Json& fit = part_of(document, {"fit"});
  const LawFigures law(fit);
  if (std::isnan(law.b_crit)) return "";
  return fmt::format(
      "The critical batch size is {} examples (95 % interval {}, {} runs at {} sizes, {} reached the target; {}).",
      digits(law.b_crit), range_text(law.low, law.high), digits(number_in(fit, {"n"})), list_in(fit, {"rows"}).size(),
      digits(number_in(fit, {"reached"})), text_in(fit, {"verdict"}));
}

std::string fit_page(const Json& document) {
  const Json& fit = part_of(document, {"fit"});
  const std::string title = "Scaling law of " + text_in(document, {"file"});
  const std::vector<SizeMiddle> sizes = middles_of_fit(fit);
  std::string body = heading(1, title) + paragraph(fit_sentence(document), "lead");
  body += "<div class=\"tiles\">\n" + law_tiles(fit, "") + time_tile(fit) + "</div>\n" + fit_warnings(fit);
  body += chart_figure(steps_chart(sizes, {}, fit)) +
          beside({chart_figure(examples_chart(sizes, {}, fit)), time_figure_of_fit(fit)});
  body += heading(2, "Sizes") + rows_table(fit);
  body += heading(2, "The law") + law_facts(fit) + four_definitions(fit);
  return html_page(title, body + footer());
}

}  // namespace tapedeck
