#include "apps/pages/run_page.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "apps/machine.h"
#include "apps/pages/checklist.h"
#include "apps/pages/html.h"
#include "apps/pages/run_table.h"
#include "apps/pages/run_text.h"
#include "apps/stats.h"

namespace tapedeck {
namespace {

std::string warnings(const std::vector<std::string>& troubles, const std::string& of = {}) {
  std::string out;
  for (const std::string& trouble : troubles) out += paragraph((of.empty() ? "" : of + ": ") + trouble, "warn");
  return out;
}

std::string all_warnings(const Groups& groups) {
  std::string out;
  for (size_t g = 0; g < groups.size(); ++g) {
    const bool several = groups.size() > 1;
    out += warnings(groups[g].troubles, several ? group_name(groups, g) : "");
    for (const RunRecord& run : groups[g].runs)
      out += warnings(run.troubles, groups[g].repeat ? (several ? group_name(groups, g) + " " : "") + run.name
                                    : several        ? group_name(groups, g)
                                                     : "");
  }
  return out;
}

std::string curves(const Groups& groups) {
  std::string out = heading(2, "Curves") + beside(curve_figures(groups, "step"));
  if (const auto others = other_figures(groups); !others.empty()) out += beside(others);
  out += heading(2, "The same against time") + beside(curve_figures(groups, "seconds"));
  return out + details("The same against examples", beside(curve_figures(groups, "examples")));
}

std::string rules(const Groups& groups) {
  return heading(2, "How far these figures can be trusted") +
         paragraph(
             "The twelve rules of Hoefler and Belli (Scientific Benchmarking of Parallel Computing Systems, SC 2015) "
             "and four more, judged by the program from what was recorded.",
             "note") +
         checklist_html(checklist(groups));
}

std::string provenance(const RunRecord& run, const std::string& title) {
  return details(title, heading(4, "Machine and build") + facts(machine_facts(run.machine)) + heading(4, "Data") +
                            facts(data_facts(run)) + heading(4, "Options") + options_html(run.config));
}

std::string title_of(const RunGroup& group) {
  return group.repeat ? fmt::format("{}: {} runs", group.name, group.runs.size()) : group.name;
}

}  // namespace

std::string machine_html(const Json& machine) { return details("Machine and build", facts(machine_facts(machine))); }

std::string footer() {
  const Build build = build_info();
  return paragraph(
      fmt::format("Written by tapedeck {}, commit {}. Numbers under the pointer are those of the run's files.",
                  build.version, build.commit),
      "note");
}

std::string run_page(const RunGroup& group) {
  const Groups groups = {group};
  const RunRecord& run = group.first();
  std::string body = heading(1, title_of(group));
  body += paragraph(what_was_trained(run) + (group.repeat ? "" : ", seed " + run.option("seed")) + ".", "lead");
  if (const std::string note = run.option("note"); !note.empty()) body += paragraph("Note: " + note, "note");
  if (group.repeat)
    for (const std::string& sentence : how_all_went(group)) body += paragraph(sentence);
  else
    body += paragraph(how_it_went(run));
  body += all_warnings(groups);
  if (group.repeat)
    if (const std::string figure = target_figure(groups); !figure.empty()) body += beside({figure});
  body += curves(groups);
  if (group.repeat)
    body += heading(2, "Seeds") + html_table(runs_table(groups));
  else
    body += heading(2, "Figures") + facts(summary_facts(run));
  body += rules(groups) + heading(2, "Where this is from");
  body += provenance(
      run, group.repeat ? "Machine, build, data and options of the first seed" : "Machine, build, data and options");
  return html_page(group.name, body + footer());
}

std::string overlay_page(const Groups& groups) {
  std::string title;
  for (size_t g = 0; g < groups.size(); ++g) title += (g ? ", " : "") + group_name(groups, g);
  std::string body = heading(1, fmt::format("{} runs laid over each other", groups.size()));
  for (size_t g = 0; g < groups.size(); ++g) {
    const RunGroup& group = groups[g];
    std::string text = group_name(groups, g) + ": " + what_was_trained(group.first()) + ". ";
    if (group.repeat)
      for (const std::string& sentence : how_all_went(group)) text += sentence + " ";
    else
      text += how_it_went(group.first());
    body += paragraph(text);
  }
  body += all_warnings(groups);
  body += heading(2, "Side by side") + html_table(runs_table(groups));
  if (const std::string figure = target_figure(groups); !figure.empty()) body += beside({figure});
  body += curves(groups) + rules(groups) + heading(2, "Where this is from");
  for (size_t g = 0; g < groups.size(); ++g) body += provenance(groups[g].first(), group_name(groups, g));
  return html_page(title, body + footer());
}

std::string list_page(const std::string& name, const Groups& groups, const std::vector<std::string>& links,
                      const Table& sweeps, const std::vector<std::string>& left_out) {
  const auto count = [](size_t n, const char* one) { return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s"); };
  std::string body = heading(1, name);
  body += paragraph(sweeps.rows.empty() ? fmt::format("{} of runs.", count(groups.size(), "folder"))
                                        : fmt::format("{} of runs, {}.", count(groups.size(), "folder"),
                                                      count(sweeps.rows.size(), "sweep")),
                    "lead");
  body += warnings(left_out);
  Table table{{"run", "what", "status", "to target", "steps", "validation", "processor"}, {}};
  for (size_t g = 0; g < groups.size(); ++g) {
    const RunGroup& group = groups[g];
    const Table own = runs_table({group});
    std::set<std::string> states;
    for (const RunRecord& run : group.runs)
      states.insert(run.diverged() ? fmt::format("diverged at step {}", *run.diverged()) : run.status());
    std::string state;
    for (const std::string& s : states) state += (state.empty() ? "" : ", ") + s;
    std::string time = "-", steps = "-", score = "-";
    const std::vector<Summary> summaries = group.summaries();
    if (group.repeat) {
      std::vector<double> seconds, scores;
      size_t reached = 0;
      for (const Summary& s : summaries) {
        const bool hit = s.target.reached.value_or(false) && s.target.seconds;
        reached += hit;
        seconds.push_back(hit ? *s.target.seconds : INFINITY);
        if (const Number of = s.final.validation_accuracy ? s.final.validation_accuracy : s.final.validation_loss)
          scores.push_back(*of);
      }
      if (!summaries.empty() && summaries.front().target.metric)
        time = fmt::format("{} of {}, median {}", reached, seconds.size(), seconds_text(median(seconds)));
      if (!scores.empty()) score = "median " + short_number(median(scores));
    } else if (!summaries.empty()) {
      const auto column = [&](const char* wanted) {
        for (size_t i = 0; i < own.columns.size(); ++i)
          if (own.columns[i] == wanted) return own.rows.front()[i].text;
        return std::string("-");
      };
      time = column("to target"), steps = column("steps");
      score = column("validation accuracy");
      if (score == "-") score = column("validation loss");
    }
    const Json& machine = group.first().machine;
    table.rows.push_back(
        {{.text = group.name, .link = g < links.size() ? links[g] : ""},
         {what_was_trained(group.first()) + (group.repeat ? fmt::format(", {} seeds", group.runs.size()) : "")},
         {state},
         {.text = time, .number = true},
         {.text = steps, .number = true},
         {.text = score, .number = true},
         {machine.is_object() && machine.contains("processor") && machine["processor"].is_string()
              ? machine["processor"].get<std::string>()
              : "unknown"}});
  }
  if (!groups.empty()) body += html_table(table);
  if (!sweeps.rows.empty()) body += heading(2, "Sweeps of batch sizes") + html_table(sweeps);
  return html_page(name, body + footer());
}

}  // namespace tapedeck
