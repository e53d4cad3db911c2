#include "apps/pages/document_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/pages/chart.h"
#include "apps/pages/run_page.h"
#include "apps/pages/run_text.h"
#include "apps/pages/sweep_page.h"

namespace tapedeck {

double number_at(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_number() ? object[key].get<double>() : NAN;
}
std::string text_at(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
}
const Json& list_at(const Json& object, const char* key) {
  static const Json none = Json::array();
  return object.is_object() && object.contains(key) && object[key].is_array() ? object[key] : none;
}
const Json& object_at(const Json& object, const char* key) {
  static const Json none = Json::object();
  return object.is_object() && object.contains(key) && object[key].is_object() ? object[key] : none;
}

namespace {

TableCell number(double value, int digits = 4) {
  return {.text = std::isfinite(value) ? short_number(value, digits) : "-", .number = true};
}

std::string option_text(const Json& document, const char* key) {
  const Json& option = object_at(object_at(document, "config"), key);
  if (!option.contains("value") || option["value"].is_null()) return "";
  return option["value"].is_string() ? option["value"].get<std::string>() : option["value"].dump();
}

std::string ratio_text(const Json& ratio) {
  const double middle = number_at(ratio, "ratio");
  if (!std::isfinite(middle)) return "not measured";
  return fmt::format("{:.3f} [{:.3f}, {:.3f}], n = {}", middle, number_at(ratio, "low"), number_at(ratio, "high"),
                     short_number(number_at(ratio, "n")));
}

std::string origin_of(const Json& document) {
  std::string out =
      heading(2, "Where this is from") + machine_html(document.contains("machine") ? document["machine"] : Json());
  if (document.contains("config")) out += details("Options", options_html(document["config"]));
  return out + footer();
}

// A value a seed, of both sides.
std::string pairs_figure(const char* title, const std::string& axis, const Json& values) {
  Chart chart{.title = title, .x = {.title = "pair of runs, a seed each", .whole = true}, .y = {.title = axis}};
  int colour = 0;
  for (const char* side : {"a", "b"}) {
    Series s{.name = side, .colour = colour++, .line = false, .markers = true};
    double pair = 0;
    for (const Json& value : list_at(values, side)) {
      ++pair;
      if (value.is_number()) s.points.push_back({.x = pair, .y = value.get<double>()});
    }
    if (!s.points.empty()) chart.series.push_back(s);
  }
  return chart_figure(chart);
}

TableCell milliseconds(double value) {
  return {.text = std::isfinite(value) ? fmt::format("{:.4f}", value) : "-", .number = true};
}

// What moves more than memory could has its numbers in the caches.
std::string bound_text(const Json& row) {
  const std::string bound = text_at(row, "bound");
  return bound == "memory" && number_at(row, "of_roof") > 1 ? "cache" : bound;
}

Table compare_table(const Json& document) {
  Table table{
      {"seed", "side", "status", "steps", "validation loss", "validation accuracy", "test accuracy", "step, ms"}, {}};
  for (const char* side : {"a", "b"})
    for (const Json& run : list_at(document, side == std::string("a") ? "runs_a" : "runs_b")) {
      const Json& final = object_at(run, "final");
      table.rows.push_back({number(number_at(run, "seed")),
                            {side},
                            {text_at(run, "status")},
                            number(number_at(run, "steps"), 9),
                            number(number_at(final, "validation_loss")),
                            number(number_at(final, "validation_accuracy")),
                            number(number_at(final, "test_accuracy")),
                            number(number_at(object_at(run, "step_ms"), "median"), 3)});
    }
  return table;
}

Table ops_table(const Json& document) {
  Table table{{"op", "calls", "self, ms", "total, ms", "share", "GFLOP/s", "GB/s", "of roof", "bound by", "at most"},
              {}};
  for (const Json& op : list_at(document, "ops")) {
    const double share = number_at(op, "share"), roof = number_at(op, "of_roof"), most = number_at(op, "at_most");
    table.rows.push_back({{text_at(op, "name") + (text_at(op, "way").empty() ? "" : " " + text_at(op, "way"))},
                          number(number_at(op, "calls"), 9),
                          milliseconds(number_at(op, "self_ms")),
                          milliseconds(number_at(op, "total_ms")),
                          {.text = std::isfinite(share) ? fmt::format("{:.1f} %", 100 * share) : "-",
                           .number = true,
                           .bar = std::isfinite(share) ? std::max(share, 0.0) : -1},
                          number(number_at(op, "gflops"), 3),
                          number(number_at(op, "gb_per_s"), 3),
                          {.text = std::isfinite(roof) ? fmt::format("{:.0f} %", 100 * roof) : "-", .number = true},
                          {bound_text(op)},
                          {.text = std::isfinite(most) ? fmt::format("{:.2f}x", most) : "-", .number = true}});
  }
  return table;
}

Table ranges_table(const Json& document) {
  Table table{{"range", "calls", "total, ms", "share", "forward, ms", "backward, ms", "of roof", "bound by"}, {}};
  for (const Json& range : list_at(document, "ranges")) {
    const double share = number_at(range, "share"), roof = number_at(range, "of_roof");
    table.rows.push_back({{text_at(range, "name")},
                          number(number_at(range, "calls"), 9),
                          milliseconds(number_at(range, "total_ms")),
                          {.text = std::isfinite(share) ? fmt::format("{:.1f} %", 100 * share) : "-",
                           .number = true,
                           .bar = std::isfinite(share) ? std::max(share, 0.0) : -1},
                          milliseconds(number_at(range, "forward_ms")),
                          milliseconds(number_at(range, "backward_ms")),
                          {.text = std::isfinite(roof) ? fmt::format("{:.0f} %", 100 * roof) : "-", .number = true},
                          {bound_text(range)}});
  }
  return table;
}

}  // namespace

DocumentKind kind_of(const Json& document) {
  const std::string command = text_at(document, "command"), of = text_at(object_at(document, "config"), "command");
  if (command == "compare") return DocumentKind::compare;
  if (command == "sweep" && document.contains("cells")) return DocumentKind::sweep;
  if (command == "fit" && document.contains("fit") && document["fit"].is_object()) return DocumentKind::fit;
  if (of == "profile" && document.contains("ops")) return DocumentKind::profile;
  return document.contains("rows") && document["rows"].is_array() ? DocumentKind::bench : DocumentKind::none;
}

std::string document_lead(const Json& document) {
  switch (kind_of(document)) {
    case DocumentKind::compare: {
      std::string out = fmt::format("a: {}; b: {}.", text_at(document, "a"), text_at(document, "b"));
      for (const Json& line : list_at(document, "verdict"))
        if (line.is_string()) out += " " + line.get<std::string>() + ".";
      return out;
    }
    case DocumentKind::profile:
      return fmt::format("{} on {}, batch {}, {}: {} steps, {} ms each.", option_text(document, "model"),
                         option_text(document, "data"), option_text(document, "batch"),
                         option_text(document, "precision"), short_number(number_at(document, "steps")),
                         short_number(number_at(document, "step_ms")));
    case DocumentKind::bench:
      return fmt::format("{}: {} rows; a time is a median, with its 5 % and 95 % quantile.",
                         text_at(object_at(document, "config"), "command"), list_at(document, "rows").size());
    case DocumentKind::fit: return fit_sentence(document);
    default: return text_at(document, "sentence");
  }
}

Table document_table(const Json& document) {
  const DocumentKind kind = kind_of(document);
  return kind == DocumentKind::compare   ? compare_table(document)
         : kind == DocumentKind::profile ? ops_table(document)
         : kind == DocumentKind::fit     ? bench_table(list_at(document["fit"], "rows"))
                                     : bench_table(list_at(document, kind == DocumentKind::sweep ? "cells" : "rows"));
}

std::string compare_page(const std::string& name, const Json& document) {
  std::string body = heading(1, "Two sides compared");
  body += facts({{"a", text_at(document, "a")}, {"b", text_at(document, "b")}});
  for (const Json& line : list_at(document, "verdict"))
    if (line.is_string()) body += paragraph(line.get<std::string>(), "lead");
  for (const Json& other : list_at(document, "also_different"))
    if (other.is_string()) body += paragraph("They also differ in " + other.get<std::string>() + ".", "warn");
  const Json& metric = object_at(document, "metric");
  const std::string what = "validation " + text_at(metric, "name");
  body += beside({pairs_figure("The result, seed by seed", what, metric),
                  pairs_figure("Step time, seed by seed", "median of a run, ms", object_at(document, "step_ms"))});
  Facts rows = {{"step time, b over a", ratio_text(object_at(document, "step_ratio"))}};
  if (std::isfinite(number_at(metric, "difference"))) {
    std::string text = short_number(number_at(metric, "difference"));
    if (std::isfinite(number_at(metric, "low")))
      text += fmt::format(", 95 % interval [{}, {}]: {}", short_number(number_at(metric, "low")),
                          short_number(number_at(metric, "high")),
                          metric.contains("difference_shown") && metric["difference_shown"] == true
                              ? "pairs of one seed show a difference"
                              : "no difference shown");
    rows.push_back({what + ", b less a", text});
  }
  const Json& outputs = object_at(document, "outputs");
  if (outputs.empty())
    rows.push_back({"outputs", "not compared: " + text_at(document, "outputs_why_not")});
  else
    for (const char* side : {"a", "b"})
      rows.push_back({fmt::format("outputs of {}, error against f64", side),
                      short_number(number_at(object_at(outputs, side), "relative"), 2)});
  if (std::isfinite(number_at(outputs, "decisions")))
    rows.push_back({"decisions that differ", fmt::format("{} of {}", short_number(number_at(outputs, "different")),
                                                         short_number(number_at(outputs, "decisions")))});
  body += heading(2, "Figures") + facts(rows) + heading(2, "Runs") + html_table(compare_table(document));
  return html_page(name, body + origin_of(document));
}

std::string profile_page(const std::string& name, const Json& document) {
  std::string body = heading(1, "Where the time of a step goes") + paragraph(document_lead(document), "lead");
  const Json& overhead = object_at(document, "overhead");
  if (!overhead.empty())
    body += paragraph(fmt::format("Profiling a step takes {} times as long as the plain step; plain against plain {}.",
                                  ratio_text(object_at(overhead, "profiled_over_plain")),
                                  ratio_text(object_at(overhead, "plain_over_plain"))),
                      "note");
  for (const char* reason : {"device_times_reason", "plain_steps_reason"})
    if (const std::string why = text_at(document, reason); !why.empty()) body += paragraph(why, "note");
  body += heading(2, "Ops");
  body += paragraph(
      fmt::format("{} ms of a step are in no op. At most: how many times as fast the step could be if this op took "
                  "no time (Amdahl). Bound by: what its roof is here, by counted FLOP and bytes.",
                  short_number(number_at(document, "in_no_op_ms"), 3)),
      "note");
  body += html_table(ops_table(document)) + heading(2, "Parts of the model") + html_table(ranges_table(document));
  if (!list_at(document, "what_if").empty()) {
    body += heading(2, "What there is to win, at most");
    for (const Json& win : list_at(document, "what_if")) body += paragraph(text_at(win, "text"));
  }
  const Json& peaks = object_at(document, "peaks");
  if (!peaks.empty())
    body += paragraph(
        fmt::format("Roofs of this machine: {} GFLOP/s (best product), {} GB/s (copy).",
                    short_number(number_at(peaks, "gemm_gflops")), short_number(number_at(peaks, "copy_gb_per_s"))),
        "note");
  return html_page(name, body + origin_of(document));
}

}  // namespace tapedeck
