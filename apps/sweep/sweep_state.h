// What a sweep is asked to do, and how far it has come. Nothing else decides which cell is next (sweep_plan.h), so that
// a sweep which was stopped, killed or enlarged goes on by itself, and no cell is counted: each has a name.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/sweep/cell.h"

namespace tapedeck {

struct SweepSettings {
  std::vector<int64_t> batches;  // ascending
  int seeds = 5;                 // runs of a size that the report counts
  int64_t first_seed = 1;
  int tuning_seeds = 1;       // runs of each rate that is tried
  std::vector<double> rates;  // to try at each size; empty: a grid that is found by itself
  int grid_points = 7;        // odd; neighbours are √2 apart

  // The grid of a size B is centred on ε*/(1 + B*/B)^alpha  [McCandlish et al. 2018, arXiv:1812.06162, eq. A.3], where
  // ε* makes it the pilot's rate at the reference size, and B* is the pilot's noise scale where that is resolved, else
  // the reference size. alpha = 1 is the optimal step of SGD, ε_max/(1 + B_noise/B)  [eq. 2.6]; for Adam their argument
  // gives 1/2  [App. E.2].
  double alpha = 0.5;
  int64_t reference_batch = 32;
  double reference_rate = 1e-3;  // where the pilot begins
  int64_t pilot_steps = 1000;

  std::optional<int64_t> cap;  // steps of each cell; none: as the pilot says
  std::optional<Targets> targets;
  int target_count = 1;  // of those that the pilot chooses
  bool again = true;
  bool horizon = false;  // see horizon.h; `cap` has no meaning then

  bool finds_targets() const { return !targets || targets->source == "pilot"; }  // also once they are stored
  bool needs_pilot() const { return horizon || finds_targets() || !cap || rates.empty(); }
  bool tunes() const { return rates.size() != 1; }
};

inline constexpr int64_t tuning_seed = 1'000'000, again_seed = 2'000'000;  // added to first_seed: no seed is used twice

struct SweepState {
  SweepSettings settings;
  std::optional<Targets> targets;
  std::map<std::string, std::pair<Cell, CellResult>> results;  // by cell_name

  void add(const Cell& cell, CellResult result) { results[cell_name(cell)] = {cell, std::move(result)}; }
  const CellResult* find(const Cell& cell) const {
    const auto at = results.find(cell_name(cell));
    return at == results.end() ? nullptr : &at->second.second;
  }
};

// Why the seconds of these results are not those of one machine that ran them one at a time; empty: they are. Cells
// that failed, and those in the folder that are no part of the result, do not count.
std::string why_not_timed(const SweepState& state);

// Those of these cells that have no result yet.
std::vector<Cell> missing(const SweepState& state, std::span<const Cell> cells);

}  // namespace tapedeck
