// tapedeck report PATH…: one page of HTML that needs nothing else, of a run, a repeat or a sweep, of several of them
// laid over each other, of a folder of them, or of a document that compare, profile or bench saved. What the pages say:
// pages/.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "apps/commands.h"
#include "apps/files.h"
#include "apps/pages/checklist.h"
#include "apps/pages/document_page.h"
#include "apps/pages/page_file.h"
#include "apps/pages/run_page.h"
#include "apps/pages/run_table.h"
#include "apps/pages/run_text.h"
#include "apps/pages/sweep_page.h"
#include "apps/pages/sweeps_page.h"
#include "apps/record.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

struct Report {
  std::string kind;  // "run", "repeat", "runs", "list", "sweep", "sweeps", "compare", "profile", "bench"
  std::string page = {};
  Table table = {};  // for CSV
  std::string markdown = {};
  Json document = {};
};

// A link to a folder, or to the page that is in it already.
std::string link_to(const fs::path& folder, const fs::path& page) {
  const fs::path from = fs::absolute(page).lexically_normal().parent_path();
  const fs::path to = fs::absolute(folder).lexically_normal();
  const bool has_page = fs::exists(to / "report.html");
  const std::string path = (has_page ? to / "report.html" : to / "").lexically_relative(from).string();
  std::string out;
  for (const char c : path) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) || std::string_view("-._~/").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out.find(':') == out.npos ? out : "./" + out;
}

std::string markdown_of_runs(const Groups& groups) {
  std::string out;
  for (size_t g = 0; g < groups.size(); ++g) {
    out += "**" + group_name(groups, g) + "**: " + what_was_trained(groups[g].first()) + ". ";
    if (groups[g].repeat)
      for (const std::string& sentence : how_all_went(groups[g])) out += sentence + " ";
    else
      out += how_it_went(groups[g].first());
    out += "\n\n";
  }
  return out + markdown_of(runs_table(groups));
}

Json checklist_json(const Groups& groups) {
  Json out = Json::array();
  for (const Judged& j : checklist(groups))
    out.push_back({{"rule", j.rule.empty() ? Json() : Json(j.rule)},
                   {"text", j.text},
                   {"verdict", verdict_text(j.verdict)},
                   {"why", j.why}});
  return out;
}

Report report_of_runs(const Groups& groups) {
  Report r{.kind = groups.size() > 1 ? "runs" : groups.front().repeat ? "repeat" : "run"};
  r.page = groups.size() > 1 ? overlay_page(groups) : run_page(groups.front());
  r.table = full_table(groups), r.markdown = markdown_of_runs(groups);
  r.document = {{"runs", runs_json(groups)}, {"checklist", checklist_json(groups)}};
  return r;
}

Report report_of_list(const fs::path& folder, const fs::path& page) {
  std::vector<fs::path> inside;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && (holds_group(entry.path()) || is_sweep(entry.path()))) inside.push_back(entry.path());
  std::sort(inside.begin(), inside.end());
  Groups groups;
  Sweeps sweeps;
  std::vector<std::string> links, sweep_links, left_out;
  for (const fs::path& path : inside) try {
      if (is_sweep(path)) {
        sweeps.push_back(read_sweep(path));
        sweep_links.push_back(link_to(path, page));
      } else {
        groups.push_back(read_group(path));
        links.push_back(link_to(path, page));
      }
    } catch (const Error& e) {  // the others are listed all the same
      left_out.push_back(fmt::format("Left out: {}.", e.what()));
    }
  if (groups.empty() && sweeps.empty())
    throw UsageError(
        inside.empty()
            ? fmt::format("{}: holds no run (there is no config.json), and no folder in it does", folder.string())
            : fmt::format("{}: none of its {} runs can be listed: {}", folder.string(), inside.size(),
                          left_out.front()));
  Report r{.kind = "list"};
  const std::string name = fs::absolute(folder / "").lexically_normal().parent_path().filename().string();
  const Table of_sweeps = sweep_list(sweeps, sweep_links);
  r.page = list_page(name, groups, links, of_sweeps, left_out);
  r.table = groups.empty() ? of_sweeps : full_table(groups);
  if (!groups.empty()) r.markdown = markdown_of(runs_table(groups));
  if (!sweeps.empty()) r.markdown += (groups.empty() ? "" : "\n") + markdown_of(of_sweeps);
  for (const std::string& sentence : left_out) r.markdown += "\n" + sentence + "\n";
  r.document = {{"runs", runs_json(groups)}, {"sweeps", Json::array()}, {"left_out", left_out}};
  for (const SweepRecord& sweep : sweeps)
    r.document["sweeps"].push_back({{"name", sweep.name}, {"document", sweep.summary}});
  return r;
}

Report report_of_document(const fs::path& file) {
  const Json document = read_document(file);
  const std::string name = file.stem().string();
  Report r;
  switch (kind_of(document)) {
    case DocumentKind::compare: r.kind = "compare", r.page = compare_page(name, document); break;
    case DocumentKind::profile: r.kind = "profile", r.page = profile_page(name, document); break;
    case DocumentKind::bench: r.kind = "bench", r.page = bench_page(name, document); break;
    case DocumentKind::fit: r.kind = "fit", r.page = fit_page(document); break;
    case DocumentKind::sweep: r.kind = "sweep", r.page = sweep_page(document, Json()); break;
    case DocumentKind::none:
      throw UsageError(
          fmt::format("{}: is no document that bench, compare or profile saved with --save, or fit --json printed; of "
                      "a run give the folder",
                      file.string()));
  }
  r.table = document_table(document);
  r.markdown = document_lead(document) + "\n\n" + markdown_of(r.table);
  r.document = {{"document", document}};
  return r;
}

Report report_of_sweep(const fs::path& folder) {
  const SweepRecord sweep = read_sweep(folder);
  Report r{.kind = "sweep"};
  r.page = sweep_page(sweep.summary, sweep.machine);
  r.table = bench_table(list_at(sweep.summary, "cells"));
  r.markdown = document_lead(sweep.summary) + "\n\n" + markdown_of(bench_table(list_at(sweep.summary, "sizes")));
  r.document = {{"document", sweep.summary}};
  return r;
}

Report report_of_sweeps(const std::vector<std::string>& paths) {
  Sweeps sweeps;
  for (const std::string& path : paths) {
    for (const SweepRecord& other : sweeps)
      if (fs::equivalent(path, other.path))
        throw UsageError(fmt::format("{}: is the same sweep as {}; give it once", path, other.path.string()));
    sweeps.push_back(read_sweep(path));
  }
  Report r{.kind = "sweeps"};
  r.page = sweeps_page(sweeps);
  r.table = sweeps_table(sweeps);
  for (const std::string& sentence : sweeps_sentences(sweeps)) r.markdown += sentence + "\n";
  if (!r.table.rows.empty()) r.markdown += "\n" + markdown_of(r.table);
  r.document = sweeps_json(sweeps);
  return r;
}

Report report_of(const std::vector<std::string>& paths, const fs::path& page) {
  for (const std::string& path : paths)
    if (!fs::exists(path)) throw UsageError(fmt::format("{}: there is no such file or folder", path));
  const fs::path only = paths.front();
  if (paths.size() == 1 && !fs::is_directory(only)) return report_of_document(only);
  if (paths.size() == 1 && is_sweep(only)) return report_of_sweep(only);
  if (paths.size() == 1 && !holds_group(only)) return report_of_list(only, page);
  if (std::all_of(paths.begin(), paths.end(), is_sweep)) return report_of_sweeps(paths);
  const bool any_file =
      std::any_of(paths.begin(), paths.end(), [](const std::string& p) { return !fs::is_directory(p); });
  Groups groups;
  for (const std::string& path : paths) {
    if (is_sweep(path) && !any_file)
      throw UsageError(fmt::format("{}: is a sweep, which is laid over other sweeps alone; give the runs apart", path));
    if (!fs::is_directory(path) || is_sweep(path))
      throw UsageError(fmt::format("{}: is no run, and has a page of its own: give it alone", path));
    groups.push_back(read_group(path));
  }
  return report_of_runs(groups);
}

fs::path page_of(const Config& config) {
  if (!config.out.empty()) return config.out;
  const fs::path only = config.paths.front();
  if (config.paths.size() > 1) return "report.html";
  if (fs::is_directory(only)) return only / "report.html";
  return fs::path(only).replace_extension(".html");
}

}  // namespace

int run_report_command(const Config& config) {
  if (config.json && config.markdown)
    throw UsageError("--json and --markdown exclude each other: both are what stands on stdout");
  const fs::path page = page_of(config);
  const bool wants_page = !config.out.empty() || !(config.json || config.markdown || !config.csv.empty());
  if (wants_page) check_page_file(page, config.force);
  if (wants_page && !config.csv.empty() && fs::weakly_canonical(config.csv) == fs::weakly_canonical(page))
    throw UsageError(fmt::format("--csv {}: is where the page goes; give another --csv or --out", config.csv));
  if (!config.csv.empty()) refuse_to_replace("csv", config.csv, config.force), check_writable(config.csv);
  const Report report = report_of(config.paths, page);
  if (config.json) {
    Json out = {{"format_version", kFormatVersion}, {"command", "report"}, {"kind", report.kind}};
    out.update(report.document);
    std::cout << json_text(out) << "\n";
  }
  if (config.markdown) std::cout << report.markdown;
  if (!config.csv.empty()) write_file(config.csv, csv_of(report.table));
  if (wants_page) write_file(page, report.page);
  if (!config.json && !config.markdown) {
    if (wants_page) std::cout << fmt::format("wrote {}\n", page.string());
    if (!config.csv.empty()) std::cout << fmt::format("wrote {}\n", config.csv);
  }
  return exit_done;
}

}  // namespace tapedeck
