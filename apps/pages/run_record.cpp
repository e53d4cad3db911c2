#include "apps/pages/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "apps/config.h"
#include "apps/record.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

Json optional_document(const fs::path& file) { return fs::exists(file) ? read_document(file) : Json(); }

// A line that was cut off, as by a full disk, or that is no strict JSON is left out and counted.
void read_metrics(RunRecord& run) {
  const fs::path file = run.path / "metrics.jsonl";
  if (!fs::exists(file)) {
    run.troubles.push_back("there is no metrics.jsonl, so that there are no curves");
    return;
  }
  std::istringstream lines(read_file(file));
  int64_t number = 0, wrong = 0, first_wrong = 0, before = -1;
  for (std::string text; std::getline(lines, text);) {
    ++number;
    Json line = Json::parse(text, nullptr, false);
    const bool good = line.is_object() && line.contains("step") && line["step"].is_number_integer() &&
                      line["step"].get<int64_t>() >= before;
    if (good) {
      before = line["step"];
      run.metrics.push_back(std::move(line));
    } else if (++wrong == 1) {
      first_wrong = number;
    }
  }
  if (wrong > 0)
    run.troubles.push_back(
        fmt::format("metrics.jsonl: {} of {} lines are left out, the first is line {}: not strict "
                    "JSON with a step that does not fall",
                    wrong, number, first_wrong));
  else if (number == 0)
    run.troubles.push_back("metrics.jsonl is empty: the run ended before its first evaluation");
}

}  // namespace

Json read_document(const fs::path& file) {
  const std::string text = read_file(file);
  Json document = Json::parse(text, nullptr, false);
  if (!document.is_object()) throw UsageError(fmt::format("{}: is no JSON document of tapedeck", file.string()));
  if (document.contains("format_version")) {
    const Json& version = document["format_version"];
    if (!version.is_number_integer() || version.get<int64_t>() < 1 || version.get<int64_t>() > kFormatVersion)
      throw UsageError(fmt::format("{}: has format_version {}, this program reads up to {}; use a newer tapedeck",
                                   file.string(), version.dump(), kFormatVersion));
  }
  return document;
}

RunRecord read_run(const fs::path& folder) {
  RunRecord run;
  run.path = folder;
  run.name = fs::absolute(folder).lexically_normal().filename().string();
  if (run.name.empty()) run.name = fs::absolute(folder).lexically_normal().parent_path().filename().string();
  if (!fs::exists(folder / "config.json"))
    throw UsageError(fmt::format("{}: holds no run (there is no config.json)", folder.string()));
  run.config = read_document(folder / "config.json");
  run.machine = optional_document(folder / "machine.json");
  run.data = optional_document(folder / "data.json");
  run.summary_json = optional_document(folder / "summary.json");
  if (!run.summary_json.is_null()) run.summary = summary_from_json(run.summary_json);
  if (!run.summary) run.troubles.push_back("there is no summary.json: the run goes on, or its process was killed");
  read_metrics(run);
  return run;
}

std::string RunRecord::status() const { return summary && !summary->status.empty() ? summary->status : "not finished"; }

std::optional<int64_t> RunRecord::diverged() const {
  if (summary && summary->status == "diverged") return summary->steps.value_or(0);
  if (summary || metrics.empty()) return std::nullopt;
  const Json& last = metrics.back();  // of a run that could not say so itself
  for (const char* key : {"train_loss", "validation_loss"})
    if (last.contains(key) && last[key].is_null()) return last["step"].get<int64_t>();
  return std::nullopt;
}

std::string RunRecord::option(const char* name) const {
  if (!config.contains(name) || !config[name].is_object() || !config[name].contains("value")) return "";
  const Json& value = config[name]["value"];
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  std::string text = json_text(value, -1);
  if (value.is_array()) text = text.substr(1, text.size() - 2);
  return text;
}

std::string RunRecord::origin(const char* name) const {
  if (!config.contains(name) || !config[name].is_object()) return "";
  const auto found = config[name].find("origin");
  return found != config[name].end() && found->is_string() ? found->get<std::string>() : "";
}

std::vector<Summary> RunGroup::summaries() const {
  std::vector<Summary> out;
  for (const RunRecord& run : runs)
    if (run.summary) out.push_back(*run.summary);
  return out;
}

bool holds_group(const fs::path& folder) {
  return fs::exists(folder / "config.json") && !fs::exists(folder / "sweep.json");
}

RunGroup read_group(const fs::path& folder) {
  std::vector<fs::path> seeds;
  if (fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.is_directory() && is_seed(entry.path()) && fs::exists(entry.path() / "config.json"))
        seeds.push_back(entry.path());
  if (seeds.empty()) {
    RunRecord run = read_run(folder);
    return {folder, run.name, {run}};
  }
  const auto number = [](const fs::path& path) {
    const std::string digits = path.filename().string().substr(5);
    return std::pair(digits.size(), digits);
  };
  std::sort(seeds.begin(), seeds.end(), [&](const auto& a, const auto& b) { return number(a) < number(b); });
  RunGroup group{folder, fs::absolute(folder).lexically_normal().filename().string(), {}, true};
  if (group.name.empty()) group.name = fs::absolute(folder).lexically_normal().parent_path().filename().string();
  for (const fs::path& seed : seeds) group.runs.push_back(read_run(seed));
  const Json summary = optional_document(folder / "summary.json");  // refuses a newer format
  const size_t finished = group.summaries().size();
  if (finished < group.runs.size())
    group.troubles.push_back(fmt::format("{} of {} runs have no summary and count in no figure of all seeds",
                                         group.runs.size() - finished, group.runs.size()));
  if (const std::string asked = group.first().option("repeat"); !asked.empty() && asked != "1") {
    if (asked != std::to_string(group.runs.size()))
      group.troubles.push_back(
          fmt::format("{} of the {} runs that were asked for have begun", group.runs.size(), asked));
  }
  return group;
}

std::vector<Point> points_of(const RunRecord& run, const char* key, const char* by) {
  std::vector<Point> out;
  for (const Json& line : run.metrics) {
    if (!line.contains(key) || !line.contains(by) || !line[by].is_number()) continue;
    const double y = line[key].is_number() ? line[key].get<double>() : NAN;
    out.push_back({.x = line[by].get<double>(), .y = y});
    out.back().title = fmt::format("{}, step {}: {}", run.name, line["step"].get<int64_t>(),
                                   std::isnan(y) ? "not finite" : short_number(y));
  }
  return out;
}

}  // namespace tapedeck
