#include "apps/sweep/sweep_plan.h"

#include <algorithm>
#include <cmath>

#include "apps/sweep/pilot.h"

namespace tapedeck {
namespace {

std::vector<Cell> shuffled(std::vector<Cell> cells) {
  std::sort(cells.begin(), cells.end(),
            [](const Cell& a, const Cell& b) { return hash_text(cell_name(a)) < hash_text(cell_name(b)); });
  return cells;
}

// The tuning was with few seeds: what the others take may be more.
int64_t cap_of_runs(const Tuning& tuned) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(cap_factor) * tuned.figure));
}

std::vector<Cell> with_seeds(const SweepSettings& s, Cell::Purpose purpose, int64_t batch, const Tuning& tuned,
                             int64_t first_seed) {
  std::vector<Cell> cells;
  for (int i = 0; tuned.rate && i < s.seeds; ++i)
    cells.push_back({purpose, batch, *tuned.rate, first_seed + i, s.cap.value_or(cap_of_runs(tuned))});
  return cells;
}

std::vector<Cell> passages_needed(const SweepState& state) {
  std::vector<Cell> trying, running;
  for (const int64_t batch : state.settings.batches) {
    const Tuning tuned = tuning(state, batch);
    trying.insert(trying.end(), tuned.needed.begin(), tuned.needed.end());
    const std::vector<Cell> runs = runs_of(state, batch, tuned);
    running.insert(running.end(), runs.begin(), runs.end());
  }
  if (!trying.empty()) return trying;
  const std::vector<Cell> again = runs_again(state);
  running.insert(running.end(), again.begin(), again.end());
  return missing(state, running);
}

// Searches go on from K to K, each at its own pace.
std::vector<Cell> horizons_needed(const SweepState& state) {
  std::vector<Cell> out;
  for (const int64_t batch : state.settings.batches) {
    const HorizonSearch search = horizon_search(state, batch);
    out.insert(out.end(), search.needed.begin(), search.needed.end());
  }
  if (const std::optional<TargetSearch> again = horizon_again(state))
    out.insert(out.end(), again->needed.begin(), again->needed.end());
  return out;
}

}  // namespace

std::vector<Cell> missing(const SweepState& state, std::span<const Cell> cells) {
  std::vector<Cell> out;
  for (const Cell& cell : cells)
    if (!state.find(cell)) out.push_back(cell);
  return out;
}

std::vector<Cell> runs_of(const SweepState& state, int64_t batch, const Tuning& tuned) {
  return with_seeds(state.settings, Cell::Purpose::run, batch, tuned, state.settings.first_seed);
}

int64_t again_batch(const SweepState& state) {
  std::vector<int64_t> with_rate;
  for (const int64_t batch : state.settings.batches) {
    const Tuning tuned = tuning(state, batch);
    if (!tuned.needed.empty()) return 0;
    if (tuned.rate) with_rate.push_back(batch);
  }
  return with_rate.empty() ? 0 : with_rate[with_rate.size() / 2];
}

std::vector<Cell> runs_again(const SweepState& state) {
  const int64_t batch = state.settings.again ? again_batch(state) : 0;
  if (batch == 0) return {};
  return with_seeds(state.settings, Cell::Purpose::again, batch, tuning(state, batch),
                    state.settings.first_seed + again_seed);
}

std::optional<TargetSearch> horizon_again(const SweepState& state) {
  const int64_t batch = state.settings.again ? again_batch(state) : 0;
  if (batch == 0) return std::nullopt;
  return search_again(state, batch, *tuning(state, batch).rate);
}

std::vector<Cell> cells_needed(SweepState& state) {
  if (std::vector<Cell> cells = pilot_cells_needed(state); !cells.empty()) return cells;
  if (!state.targets) state.targets = choose_targets(state);
  return shuffled(state.settings.horizon ? horizons_needed(state) : passages_needed(state));
}

}  // namespace tapedeck
