#include <algorithm>
#include <set>
#include <vector>

#include "apps/sweep/sweep_state.h"
#include "engine/check.h"

namespace tapedeck {

// Cells that began before one that had begun earlier was done. A cell takes its clock's time or more, so that one which
// went on later takes none from those in between.
static int overlapping(const SweepState& state) {
  std::vector<std::pair<double, double>> spans;  // began, ended
  for (const auto& [name, entry] : state.results)
    if (const CellResult& result = entry.second; result.began && result.status != CellResult::Status::failed)
      spans.emplace_back(*result.began, *result.began + result.wall_seconds);
  std::sort(spans.begin(), spans.end());
  int out = 0;
  double end = 0;
  for (const auto& [began, ended] : spans) {
    out += began < end;
    end = std::max(end, ended);
  }
  return out;
}

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
  if (const int n = overlapping(state); n > 0)
    return text("{} of {} cells began while another one ran, by another process or --part", n, state.results.size());
  if (machines.size() <= 1) return "";
  std::string list;
  for (const std::string& machine : machines) list += (list.empty() ? "" : "; ") + machine;
  return "cells ran on different machines or numbers of threads (" + list + ")";
}

}  // namespace tapedeck
