// --resume DIR: what the options may change, and what the folder of a run says of its past.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/config.h"
#include "apps/summary.h"

namespace tapedeck {

struct Change {
  std::string option, before, now;  // "steps", "100", "200"
};

// How `now` differs from what the run was made with. Options that would make it another run (the model, the batch, the
// rate, …) are refused with both values, unless --force is given.
std::vector<Change> changes_on_resume(const Config& now, const Config& recorded);

// What a finished run came to; none while it is not finished: its process was stopped, or killed.
std::optional<Summary> finished_summary(const std::filesystem::path& run);

// Whether a finished run has more to do now: another length, target or patience.
bool goes_further(const std::vector<Change>& changes);

// Notes the changed options in config.json and the resumption in resumes.jsonl; what the earlier end left is removed.
void record_resumption(const std::filesystem::path& run, const Config& now, const std::vector<Change>& changes,
                       const std::string& checkpoint);

}  // namespace tapedeck
