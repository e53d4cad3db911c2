// The page of a bench: a chart where rows differ in a size, and every row with its times.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "apps/pages/chart.h"
#include "apps/pages/document_page.h"
#include "apps/pages/run_page.h"
#include "apps/pages/run_text.h"

namespace tapedeck {
namespace {

constexpr const char* units[] = {"ms", "us", "seconds"};
constexpr const char* sizes[] = {"batch", "size", "context", "threads", "kernels", "kib", "rows", "workers"};

// Times of a row, or of a part of it ("fused"), by the row's size: a series for what else tells rows apart.
void add_point(std::map<std::string, Series>& by_name, std::string& unit, const Json& times, const std::string& name,
               double x) {
  for (const char* u : units) {
    const double middle = number_at(times, fmt::format("median_{}", u).c_str());
    if (!std::isfinite(middle)) continue;
    unit = u;
    Series& s = by_name[name];
    s.name = name;
    s.line = false, s.markers = true;
    s.points.push_back({.x = x, .y = middle, .low = number_at(times, "p05"), .high = number_at(times, "p95")});
    s.points.back().title =
        fmt::format("{}: {} {} [{}, {}], n = {}", text_at(times, "key").empty() ? name : text_at(times, "key"),
                    short_number(middle), u, short_number(s.points.back().low), short_number(s.points.back().high),
                    short_number(number_at(times, "n")));
  }
}

std::string kind_of_row(const Json& row, const std::string& size) {  // its key without the size
  std::string key = text_at(row, "key"), out;
  for (size_t at = 0; at < key.size();) {
    const size_t end = std::min(key.find(' ', at), key.size());
    if (const std::string word = key.substr(at, end - at); !word.starts_with(size + "="))
      out += (out.empty() ? "" : " ") + word;
    at = end + 1;
  }
  return out;
}

std::string times_figure(const Json& rows) {
  for (const char* size : sizes) {
    std::map<std::string, Series> by_name;
    std::string unit;
    for (const Json& row : rows) {
      const double x = number_at(row, size);
      if (!std::isfinite(x)) continue;
      const std::string name = kind_of_row(row, size);
      add_point(by_name, unit, row, name, x);
      for (const auto& [part, times] : row.items())
        if (times.is_object()) add_point(by_name, unit, times, name + ", " + part, x);
    }
    Chart chart{.title = fmt::format("Time by {}", size),
                .note = "median, and 5 % to 95 % of the times",
                .x = {.title = size, .scale = Scale::log2},
                .y = {.title = "time, " + unit, .scale = Scale::log},
                .large = true};
    int colour = 0;
    size_t most = 0;
    for (auto& [name, series] : by_name) {
      series.colour = colour++;
      most = std::max(most, series.points.size());
      chart.series.push_back(series);
    }
    if (most >= 2 && by_name.size() <= 12) return chart_figure(chart);
  }
  return "";
}

}  // namespace

// A column for each number or text that a row holds, those of its parts with the part's name before.
Table bench_table(const Json& rows) {
  Table table;
  std::vector<std::map<std::string, TableCell>> cells;
  const auto put = [&](const std::string& name, const Json& value) {
    if (value.is_structured() || name == "rounds") return;
    if (std::find(table.columns.begin(), table.columns.end(), name) == table.columns.end())
      table.columns.push_back(name);
    TableCell& cell = cells.back()[name];
    cell.number = value.is_number();
    cell.text = value.is_number()   ? short_number(value.get<double>())
                : value.is_string() ? value.get<std::string>()
                : value.is_null()   ? "-"
                : value == true     ? "yes"
                                    : "no";
  };
  for (const Json& row : rows) {
    cells.emplace_back();
    if (!row.is_object()) continue;
    for (const auto& [name, value] : row.items())
      if (name != "key" && name != "rounds") {
        put(name, value);
        if (value.is_object())
          for (const auto& [part, inner] : value.items())
            if (part != "rounds" && part != "key") put(name + " " + part, inner);
      }
  }
  std::erase_if(table.columns, [&](const std::string& name) {  // nothing in any row
    return std::all_of(cells.begin(), cells.end(), [&](const auto& row) {
      const auto found = row.find(name);
      return found == row.end() || found->second.text == "-";
    });
  });
  for (auto& row : cells) {
    std::vector<TableCell> line;
    for (const std::string& name : table.columns) line.push_back(row.contains(name) ? row[name] : TableCell{"-", true});
    table.rows.push_back(line);
  }
  return table;
}

std::string bench_page(const std::string& name, const Json& document) {
  const std::string command = text_at(object_at(document, "config"), "command");
  std::string body = heading(1, command.empty() ? "Bench" : command) + paragraph(document_lead(document), "lead");
  std::map<std::string, Json> by_bench;  // `bench all` has rows of several
  std::vector<std::string> order;
  for (const Json& row : list_at(document, "rows")) {
    const std::string bench = text_at(row, "name");
    if (!by_bench.contains(bench)) order.push_back(bench), by_bench[bench] = Json::array();
    by_bench[bench].push_back(row);
  }
  for (const std::string& bench : order)
    body += heading(2, bench.empty() ? "Rows" : bench) + times_figure(by_bench[bench]) +
            html_table(bench_table(by_bench[bench]));
  for (const char* list : {"does_not_fit", "failed"})
    for (const Json& what : list_at(document, list))
      body += paragraph(fmt::format("{} is missing: {}", text_at(what, "size"), text_at(what, "why")), "warn");
  body += heading(2, "Where this is from") + machine_html(document.contains("machine") ? document["machine"] : Json());
  if (document.contains("config")) body += details("Options", options_html(document["config"]));
  return html_page(name, body + footer());
}

}  // namespace tapedeck
