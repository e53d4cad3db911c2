// A run of one seed in a folder: begun there, or gone on with.
#pragma once
#include "apps/progress.h"
#include "apps/resume.h"
#include "apps/summary.h"

namespace tapedeck {

struct Ending {
  Summary summary;
  std::string report;  // for people; empty where the run had ended before
  Json document;
};

// `earlier` is null for a run that begins. On failure a run that had begun just now and has nothing to show leaves no
// folder. SIGINT interrupts it, where an Interruption lives.
Ending train_in(RunFolder& folder, const Earlier* earlier, const Config& config, const Problem& problem, Device device,
                TrainingClock& clock);

// Begins a run in config.out, or goes on with the one in config.resume; one that has ended is only read.
Ending train_or_go_on(const Config& config, const Problem& problem, Device device);

}  // namespace tapedeck
