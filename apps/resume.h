// --resume DIR: what the folder says of the run's past, what the options may change, and the note of it in the folder.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/checkpoint.h"
#include "apps/problem.h"
#include "apps/record.h"
#include "apps/summary.h"

namespace tapedeck {

struct Change {
  std::string option, before, now;  // "steps", "100", "200"
};

// How `now` differs from what the run was made with. Options that would make it another run (the model, the batch, the
// rate, …) are refused with both values, unless --force is given.
std::vector<Change> changes_on_resume(const Config& now, const Config& recorded);

// The options that may not change, as text: a checkpoint keeps them, so that a config.json edited by hand is noticed.
Json kept_options(const Config& config);

// What a finished run came to; none while it is not finished: its process was stopped, or killed.
std::optional<Summary> finished_summary(const std::filesystem::path& run);
std::string ended_report(const std::string& run, const Summary& end);  // that nothing is left to do, and what would be

// A run that is to go on. Its folder is locked, and nothing in it has been changed yet.
struct Earlier {
  RunFolder folder;
  std::vector<Change> changes;
  std::optional<Summary> finished;  // set: there is nothing left to do
  std::optional<Checkpoint> from;   // none: it was stopped before its first checkpoint, and begins anew
};
// Looks at config.resume. A damaged checkpoint that is passed over is told on stderr. Throws Error when all are
// damaged, and UsageError when a run that got further has no checkpoint to go on from, or a change is one of the shape
// of its weights.
Earlier look_at_run(const Config& config);

// Throws UsageError when the data has changed (unless --force, and the weights fit it), or the run is already past its
// new end.
void check_goes_on(const Earlier& earlier, const Config& config, const Problem& problem);

// Once the run stands where it was: notes changed options and data, adds a line to resumes.jsonl, and takes away what
// the earlier end left: its summary, and checkpoints that are damaged.
void record_resumption(const Earlier& earlier, const Config& config, const Dataset& data, Device device);
void record_changes(const std::filesystem::path& run, const Config& config, const std::vector<Change>& changes);

}  // namespace tapedeck
