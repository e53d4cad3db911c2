// What a run left in its folder, as pages read it: whatever is there, with a sentence for what is not. Numbers that
// were not finite are null in the files and NaN here: a gap in a curve, never a value.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/pages/chart.h"
#include "apps/summary.h"

namespace tapedeck {

struct RunRecord {
  std::filesystem::path path;
  std::string name;                // the folder's
  Json config, machine, data;      // null where there is no such file
  std::optional<Summary> summary;  // none: the run goes on, or its process was killed
  Json summary_json;               // all of it, also what Summary does not know
  std::vector<Json> metrics;       // lines, in the order of steps
  std::vector<std::string> troubles;

  std::string status() const;                  // the summary's; "not finished" without one
  std::optional<int64_t> diverged() const;     // the step at which the loss was no number any more
  std::string option(const char* name) const;  // value as text; "" where it was not given
  std::string origin(const char* name) const;
};

// Throws UsageError where the folder holds no run or one of a newer format, Error where a file cannot be read.
RunRecord read_run(const std::filesystem::path& folder);

// A JSON document of ours. Throws as read_run.
Json read_document(const std::filesystem::path& file);

// Runs that belong together: one, or those of a --repeat, a seed each.
struct RunGroup {
  std::filesystem::path path;
  std::string name;
  std::vector<RunRecord> runs;  // at least one
  bool repeat = false;
  std::vector<std::string> troubles = {};

  const RunRecord& first() const { return runs.front(); }
  std::vector<Summary> summaries() const;  // of the runs that have one
};
RunGroup read_group(const std::filesystem::path& folder);
bool holds_group(const std::filesystem::path& folder);  // a config.json, and no sweep

// A number of each line that has it, by "step", "examples" or "seconds".
std::vector<Point> points_of(const RunRecord& run, const char* key, const char* by);

}  // namespace tapedeck
