// What `train` prints for a person: one run, and several seeds side by side. Every figure with its n and its spread.
#pragma once
#include <string>
#include <vector>

#include "apps/config.h"
#include "apps/summary.h"
#include "apps/trainer.h"

namespace tapedeck {

// On stdout: the document with --json, else the report.
void print_report(const Config& config, const std::string& report, const Json& document);

std::string run_report(const Summary& summary, const Trainer& trainer, const Problem& problem);

struct RepeatStatistics {  // of the seconds to the target on the training clock; runs that missed count as infinite
  int runs = 0, reached = 0;
  Number median, low, high, coverage, expected_running_time;
};
RepeatStatistics repeat_statistics(const std::vector<Summary>& runs);
std::string repeat_report(const std::vector<Summary>& runs, const Dataset& data);
Json repeat_json(const std::vector<Summary>& runs);

}  // namespace tapedeck
