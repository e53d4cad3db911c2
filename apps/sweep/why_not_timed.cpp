#include <set>

#include "apps/sweep/sweep_state.h"
#include "engine/check.h"

namespace tapedeck {

std::string why_not_timed(const SweepState& state) {
  std::set<std::string> machines;
  int side_by_side = 0;
  for (const auto& [name, entry] : state.results) {
    const CellResult& result = entry.second;
    if (result.status == CellResult::Status::failed) continue;
    side_by_side += result.side_by_side;
    if (!result.machine.empty()) machines.insert(result.machine);
  }
  if (side_by_side > 0)
    return text("{} of {} cells ran side by side with others (--parallel)", side_by_side, state.results.size());
  if (machines.size() <= 1) return "";
  std::string list;
  for (const std::string& machine : machines) list += (list.empty() ? "" : "; ") + machine;
  return "cells ran on different machines or numbers of threads (" + list + ")";
}

}  // namespace tapedeck
