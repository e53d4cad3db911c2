#include "apps/sweep/pilot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/sweep/knee.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

constexpr double apart = 4;  // neighbouring rates
constexpr int farthest = 6;  // rates to either side of the first: 4⁶ = 4096 times

Cell pilot_cell(const SweepSettings& s, double rate) {
  return {Cell::Purpose::pilot, s.reference_batch, rate, s.first_seed + tuning_seed, s.pilot_steps};
}
Cell pilot_at(const SweepSettings& s, int place) {
  return pilot_cell(s, rounded_rate(s.reference_rate * std::pow(apart, place)));
}

// Smaller is better. Runs that reached a given target come before all others, by their steps.
struct Merit {
  bool missed = true;
  double value = std::numeric_limits<double>::infinity();
  bool operator<(const Merit& other) const { return missed != other.missed ? !missed : value < other.value; }
};

Merit merit(const SweepSettings& s, const Cell& cell, const CellResult& result) {
  if (result.status == CellResult::Status::diverged || result.status == CellResult::Status::failed) return {};
  if (!s.finds_targets())  // or it would be judged in another way once its own targets are known
    if (const Crossing at = crossing(result, s.targets->tightest(), cell.steps); at.reached) return {false, at.upper};
  return {true, result.best_loss()};
}

// What a message advises where no rate was of use.
const char* other_rates(const SweepSettings& s) { return s.rates.empty() ? "another --lr" : "other --rates"; }

}  // namespace

std::vector<Cell> pilot_cells_needed(const SweepState& state) {
  const SweepSettings& s = state.settings;
  if (!s.needs_pilot()) return {};
  if (!s.rates.empty()) {
    std::vector<Cell> all;
    for (const double rate : s.rates) all.push_back(pilot_cell(s, rate));
    return missing(state, all);
  }
  const Cell first = pilot_at(s, 0);
  if (!state.find(first)) return {first};
  // Outwards from the best so far, until both of its neighbours are known.
  const auto known = [&](int place) { return state.find(pilot_at(s, place)); };
  int best = 0;
  for (int place = -farthest; place <= farthest; ++place)
    if (const CellResult* result = known(place))
      if (merit(s, pilot_at(s, place), *result) < merit(s, pilot_at(s, best), *known(best))) best = place;
  std::vector<Cell> cells;
  for (const int place : {best - 1, best + 1})
    if (std::abs(place) <= farthest && !known(place)) cells.push_back(pilot_at(s, place));
  // Where nothing works at the first rate nor beside it, smaller ones are left to try.
  const bool hopeless = std::isinf(merit(s, pilot_at(s, best), *known(best)).value);
  if (cells.empty() && hopeless)
    for (int place = -2; place >= -farthest && cells.empty(); --place)
      if (!known(place)) cells.push_back(pilot_at(s, place));
  return cells;
}

Pilot best_pilot(const SweepState& state) {
  std::optional<Pilot> best;
  Merit least;
  const CellResult* worst = nullptr;
  for (const auto& [name, entry] : state.results) {
    const auto& [cell, result] = entry;
    if (cell.purpose != Cell::Purpose::pilot) continue;
    if (!worst || result.status == CellResult::Status::failed) worst = &result;
    if (const Merit m = merit(state.settings, cell, result); m < least) least = m, best = Pilot{cell, &result};
  }
  if (best) return *best;
  const std::string why = worst ? worst->reason : "";
  if (worst && worst->out_of_memory)
    throw OutOfMemory(text("the pilot at batch {}: {}", state.settings.reference_batch, why));
  const SweepSettings& s = state.settings;
  const std::string tried =
      s.rates.empty() ? text("every rate that was tried around {}", s.reference_rate) : "each of the given rates";
  throw Error(text("the pilot failed or diverged at {} ({}): try {}", tried, why, other_rates(s)));
}

Targets choose_targets(const SweepState& state) {
  if (state.settings.targets) return *state.settings.targets;
  const Pilot pilot = best_pilot(state);
  const std::vector<double> multiples =
      state.settings.target_count == 1 ? std::vector<double>{1.5} : std::vector<double>{0.5, 1.5, 3};
  return {"loss", losses_behind_knee(pilot.result->curve, multiples), "pilot", cell_name(pilot.cell)};
}

int64_t steps_by_pilot(const SweepState& state, int64_t batch, const Target& target) {
  const SweepSettings& s = state.settings;
  const Pilot pilot = best_pilot(state);
  const Crossing at = crossing(*pilot.result, target, pilot.cell.steps);
  // A decayed run is at its best at its end, where no evaluation is left to confirm it; a search only begins there.
  const bool touched = s.horizon && at.first_touch;
  CHECK(at.reached || touched,
        "the pilot did not reach {} in {} steps of {} examples at any rate that was tried (lowest loss {:.4g} at {}): "
        "a looser --targets, more --epochs, or {}",
        to_text(target), s.pilot_steps, s.reference_batch, pilot.result->best_loss(), pilot.cell.rate, other_rates(s));
  const double more = std::max(1.0, static_cast<double>(s.reference_batch) / static_cast<double>(batch));
  const double steps = at.reached ? at.upper : static_cast<double>(*at.first_touch);
  return static_cast<int64_t>(std::ceil(steps * more));
}

int64_t steps_by_pilot(const SweepState& state, int64_t batch) {
  return steps_by_pilot(state, batch, state.targets->tightest());
}

int64_t first_cap(const SweepState& state, int64_t batch) {
  return state.settings.cap ? *state.settings.cap : cap_factor * steps_by_pilot(state, batch);
}

double grid_centre(const SweepState& state, int64_t batch) {
  const SweepSettings& s = state.settings;
  const Pilot pilot = best_pilot(state);
  const auto reference = static_cast<double>(s.reference_batch);
  double knee = reference;
  if (const auto& noise = pilot.result->noise; noise && noise->state == "resolved" && noise->value.value_or(0) > 0)
    knee = *noise->value;
  const double here = 1 + knee / static_cast<double>(batch), there = 1 + knee / reference;
  return rounded_rate(pilot.cell.rate * std::pow(there / here, s.alpha));
}

}  // namespace tapedeck
