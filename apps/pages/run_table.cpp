#include "apps/pages/run_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/pages/run_text.h"
#include "apps/stats.h"

namespace tapedeck {
namespace {

// Options whose value differs between runs, but for what names or places a run, and the seed within a group. Of many,
// those that were chosen: the others follow from them.
std::vector<std::string> differing_options(const Groups& groups) {
  constexpr size_t most = 4;
  std::vector<std::string> names, chosen;
  const Json& first = groups.front().first().config;
  for (const auto& [name, entry] : first.items()) {
    static const std::set<std::string> left_out = {"out",     "force",     "resume",     "config",           "json",
                                                   "quiet",   "seed",      "note",       "device",           "repeat",
                                                   "dry-run", "log-every", "eval-every", "checkpoint-every", "workers",
                                                   "prefetch"};
    if (!entry.is_object() || left_out.contains(name)) continue;
    const std::string value = groups.front().first().option(name.c_str());
    for (const RunGroup& group : groups)
      if (group.first().option(name.c_str()) != value) {
        names.push_back(name);
        break;
      }
  }
  for (const std::string& name : names)
    if (std::any_of(groups.begin(), groups.end(),
                    [&](const RunGroup& g) { return g.first().origin(name.c_str()) != "default"; }))
      chosen.push_back(name);
  if (names.size() > most) names = chosen;
  if (names.size() > most) names.resize(most);
  return names;
}

std::string number(Number value, int digits = 4) { return value ? short_number(*value, digits) : "-"; }

// "0.97" as the target, "-" without one.
std::string time_to_target(const RunRecord& run) {
  if (!run.summary || !run.summary->target.metric) return "-";
  const auto& target = run.summary->target;
  return target.reached.value_or(false) && target.seconds ? seconds_text(*target.seconds) : "not reached";
}

std::string status_text(const RunRecord& run) {
  const auto step = run.diverged();
  return step ? fmt::format("diverged at step {}", *step) : run.status();
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == text.npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

void flatten(const Json& value, const std::string& name, std::vector<std::pair<std::string, std::string>>& out) {
  if (value.is_object()) {
    for (const auto& [key, part] : value.items()) flatten(part, name.empty() ? key : name + "." + key, out);
  } else if (!value.is_array()) {
    out.push_back({name, value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump()});
  }
}

}  // namespace

Table runs_table(const Groups& groups, const std::vector<std::string>& links) {
  Table table{{"run"}, {}};
  const std::vector<std::string> options = differing_options(groups);
  for (const std::string& name : options) table.columns.push_back(name);
  size_t runs = 0;
  for (const RunGroup& group : groups) runs = std::max(runs, group.runs.size());
  if (runs > 1) table.columns.push_back("seed");
  for (const char* column : {"steps", "to target", "at step", "validation loss", "validation accuracy", "test accuracy",
                             "step, ms", "status"})
    table.columns.push_back(column);
  for (size_t g = 0; g < groups.size(); ++g)
    for (const RunRecord& run : groups[g].runs) {
      std::vector<TableCell> row = {{.text = group_name(groups, g), .link = g < links.size() ? links[g] : ""}};
      for (const std::string& name : options) row.push_back({.text = run.option(name.c_str())});
      const Summary s = run.summary.value_or(Summary());
      const auto add = [&](const std::string& text) { row.push_back({.text = text, .number = true}); };
      if (runs > 1) add(run.option("seed"));
      add(s.steps ? std::to_string(*s.steps) : "-");
      add(time_to_target(run));
      add(s.target.step ? std::to_string(*s.target.step) : "-");
      add(number(s.final.validation_loss));
      add(number(s.final.validation_accuracy));
      add(number(s.final.test_accuracy));
      add(s.step_ms ? short_number(s.step_ms->median_ms, 3) : "-");
      row.push_back({.text = status_text(run)});
      table.rows.push_back(row);
    }
  return table;
}

Table full_table(const Groups& groups) {
  Table table;
  std::vector<std::vector<std::pair<std::string, std::string>>> rows;
  for (size_t g = 0; g < groups.size(); ++g)
    for (const RunRecord& run : groups[g].runs) {
      const auto diverged = run.diverged();
      std::vector<std::pair<std::string, std::string>> row = {
          {"run", group_name(groups, g)},
          {"folder", run.path.string()},
          {"status", run.status()},
          {"diverged_at", diverged ? std::to_string(*diverged) : ""}};
      for (const char* option : {"optimizer", "lr", "schedule", "warmup", "hidden", "layers", "width"})
        row.push_back({std::string("option.") + option, run.option(option)});
      Json summary = run.summary_json;
      if (summary.is_object()) summary.erase("format_version"), summary.erase("status"), summary.erase("command");
      flatten(summary, "", row);
      rows.push_back(row);
    }
  for (const auto& row : rows)
    for (const auto& [name, value] : row)
      if (std::find(table.columns.begin(), table.columns.end(), name) == table.columns.end())
        table.columns.push_back(name);
  for (const auto& row : rows) {
    std::vector<TableCell> cells(table.columns.size());
    for (const auto& [name, value] : row)
      cells[static_cast<size_t>(std::find(table.columns.begin(), table.columns.end(), name) - table.columns.begin())]
          .text = value;
    table.rows.push_back(cells);
  }
  return table;
}

std::string csv_of(const Table& table) {
  std::string out;
  for (size_t i = 0; i < table.columns.size(); ++i) out += (i ? "," : "") + csv_cell(table.columns[i]);
  out += "\n";
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i) out += (i ? "," : "") + csv_cell(row[i].text);
    out += "\n";
  }
  return out;
}

std::string markdown_of(const Table& table) {
  const auto cell = [](const std::string& text) {
    std::string out;
    for (const char c : text) out += c == '|' ? "\\|" : c == '\n' || c == '\r' ? " " : std::string(1, c);
    return " " + out + " |";
  };
  std::string out = "|", line = "|";
  for (size_t i = 0; i < table.columns.size(); ++i) {
    out += cell(table.columns[i]);
    const bool is_number = !table.rows.empty() && i < table.rows.front().size() && table.rows.front()[i].number;
    line += is_number ? " ---: |" : " --- |";
  }
  out += "\n" + line + "\n";
  for (const auto& row : table.rows) {
    out += "|";
    for (const TableCell& c : row) out += cell(c.text);
    out += "\n";
  }
  return out;
}

Json runs_json(const Groups& groups) {
  Json out = Json::array();
  for (size_t g = 0; g < groups.size(); ++g)
    for (const RunRecord& run : groups[g].runs) {
      const auto diverged = run.diverged();
      const Json no_object = Json::object();
      out.push_back({{"name", group_name(groups, g)},
                     {"folder", run.path.string()},
                     {"status", run.status()},
                     {"diverged_at", diverged ? Json(*diverged) : Json()},
                     {"lines_of_metrics", run.metrics.size()},
                     {"troubles", run.troubles},
                     {"config", run.config},
                     {"machine", run.machine},
                     {"data", run.data},
                     {"summary", run.summary_json},
                     {"metrics", run.metrics}});
    }
  return out;
}

}  // namespace tapedeck
