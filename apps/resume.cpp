#include "apps/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "apps/machine.h"
#include "apps/options.h"
#include "apps/record.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

std::string shown(const Config& config, const Option& option) {
  const std::string value = value_text(config, option);
  return value.empty() ? "none" : value;
}

}  // namespace

std::vector<Change> changes_on_resume(const Config& now, const Config& recorded) {
  std::vector<Change> changes;
  for (const Option& option : all_options()) {
    if (!(option.commands & kTrain) || option.of_one_run || option.resume == Option::OnResume::own) continue;
    const Change change{option.name, shown(recorded, option), shown(now, option)};
    if (change.before == change.now) continue;
    if (option.resume == Option::OnResume::same && !now.force)
      throw UsageError(
          fmt::format("--{0} {1}: the run in {2} was made with {3}; leave --{0} away, or --force to go on with {1}",
                      option.name, change.now, now.resume, change.before));
    changes.push_back(change);
  }
  return changes;
}

std::optional<Summary> finished_summary(const fs::path& run) {
  const fs::path file = run / "summary.json";
  if (!fs::exists(file)) return std::nullopt;
  Summary summary;
  try {
    summary = summary_from_json(Json::parse(read_file(file)));
  } catch (const nlohmann::json::exception&) {
    throw Error(
        fmt::format("{}: is not the summary of a run: damaged; remove it to go on from the checkpoint", file.string()));
  }
  return summary.status == "interrupted" ? std::nullopt : std::optional(summary);
}

bool goes_further(const std::vector<Change>& changes) {
  return std::any_of(changes.begin(), changes.end(), [](const Change& c) {
    const Option* option = find_option(c.option, kTrain);
    return option->resume != Option::OnResume::free;
  });
}

void record_resumption(const fs::path& run, const Config& now, const std::vector<Change>& changes,
                       const std::string& checkpoint) {
  fs::remove(run / "summary.json");
  const Json before = Json::parse(read_file(run / "config.json")), after = to_json(now);
  Json merged = before, noted = Json::object();
  for (const Change& change : changes) {
    merged[change.option] = after[change.option];
    noted[change.option] = {{"before", change.before}, {"now", change.now}};
  }
  if (!changes.empty()) write_file(run / "config.json", json_text(merged) + "\n");

  const Json line = {{"format_version", kFormatVersion},
                     {"from", checkpoint},
                     {"changes", noted},
                     {"machine", machine_json(this_machine(), measure_load(), now.threads)}};
  const fs::path file = run / "resumes.jsonl";
  std::string lines = fs::exists(file) ? read_file(file) : "";
  write_file(file, lines + json_text(line, -1) + "\n");
}

}  // namespace tapedeck
