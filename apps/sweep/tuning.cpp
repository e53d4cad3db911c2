#include "apps/sweep/tuning.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "apps/stats.h"
#include "apps/sweep/horizon.h"
#include "apps/sweep/pilot.h"

namespace tapedeck {
namespace {

constexpr int step = 2;                       // of a grid, in places: √2, where a place is a factor of 2^¼
constexpr int grows_by = 2, grows_times = 4;  // points, at the edge where the best lies
constexpr double slack = 2;                   // of a cap, over the best steps so far

std::vector<Cell> cells_of(const SweepSettings& s, int64_t batch, double rate, int64_t cap) {
  std::vector<Cell> cells;
  for (int i = 0; i < s.tuning_seeds; ++i)
    cells.push_back({Cell::Purpose::tune, batch, rate, s.first_seed + tuning_seed + i, cap});
  return cells;
}

RateTrial trial(const SweepState& state, const std::vector<Cell>& cells) {
  RateTrial out{cells[0].rate};
  out.cap = static_cast<double>(cells[0].steps);
  std::vector<double> figures;
  for (const Cell& cell : cells) {
    const CellResult& result = *state.find(cell);
    if (result.status == CellResult::Status::failed) continue;
    out.diverged += result.status == CellResult::Status::diverged;
    const Crossing at = crossing(result, state.targets->tightest(), cell.steps);
    out.reached += at.reached;
    if (state.settings.horizon)
      figures.push_back(final_metric(result, {"loss", 0}).value_or(std::numeric_limits<double>::infinity()));
    else
      figures.push_back(at.upper);
  }
  out.n = static_cast<int>(figures.size());
  out.figure = figures.empty() ? std::numeric_limits<double>::infinity() : median(figures);
  return out;
}

// Which of the trials is the best; none where no rate reached the target in most of its runs.
std::optional<size_t> best_of(const std::vector<RateTrial>& trials) {
  std::optional<size_t> best;
  double least = 0;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (std::isinf(trials[i].figure)) continue;
    double sum = 0, weights = 0;
    const auto add = [&](const RateTrial& t, double weight) {
      if (std::isfinite(t.figure)) sum += weight * std::log(t.figure), weights += weight;
    };
    if (i > 0) add(trials[i - 1], 1);
    add(trials[i], 2);
    if (i + 1 < trials.size()) add(trials[i + 1], 1);
    const double smooth = sum / weights;
    if (!best || smooth < least) best = i, least = smooth;
  }
  return best;
}

// A grid as it grows: which places it has, and with which cap each was tried.
struct Grid {
  const SweepState& state;
  const int64_t batch;
  std::map<int, std::vector<Cell>> cells = {};  // by place

  double rate(int place) const {
    const SweepSettings& s = state.settings;
    if (!s.rates.empty()) return s.rates[static_cast<size_t>(place)];
    return rounded_rate(grid_centre(state, batch) * std::exp2(place / 4.0));
  }
  void add_first(int place, int64_t cap) { cells[place] = {cells_of(state.settings, batch, rate(place), cap)[0]}; }
  void add(int place, int64_t cap) { cells[place] = cells_of(state.settings, batch, rate(place), cap); }

  std::vector<Cell> needed() const {
    std::vector<Cell> all;
    for (const auto& [place, of_rate] : cells) all.insert(all.end(), of_rate.begin(), of_rate.end());
    return missing(state, all);
  }
  // The first reason where all that ran failed: another run would change nothing.
  std::string why_all_failed() const {
    std::string reason;
    for (const auto& [place, of_rate] : cells)
      for (const Cell& cell : of_rate) {
        const CellResult& result = *state.find(cell);
        if (result.status != CellResult::Status::failed) return "";
        if (reason.empty()) reason = result.reason;
      }
    return reason;
  }
  std::vector<RateTrial> trials() const {
    std::vector<RateTrial> out;
    for (const auto& [place, of_rate] : cells) out.push_back(trial(state, of_rate));
    return out;
  }
};

// Twice the best so far, or the first cap.
int64_t cap_after(const std::vector<RateTrial>& trials, int64_t first) {
  double best = std::numeric_limits<double>::infinity();
  for (const RateTrial& t : trials) best = std::min(best, t.figure);
  return std::isinf(best) ? first : std::min(first, static_cast<int64_t>(std::ceil(slack * best)));
}

bool any_reached(const std::vector<RateTrial>& trials) {
  return std::any_of(trials.begin(), trials.end(), [](const RateTrial& t) { return std::isfinite(t.figure); });
}

// To which side the grid is to grow: 0: to none.
int growth(const std::vector<RateTrial>& trials) {
  if (const auto best = best_of(trials)) {
    if (*best + 1 == trials.size()) return 1;
    return *best == 0 ? -1 : 0;
  }
  // Nothing reached the target: where rates diverged they are too high.
  const bool diverged = std::any_of(trials.begin(), trials.end(), [](const RateTrial& t) { return t.diverged > 0; });
  return diverged ? -1 : 1;
}

// The first place in this order whose first run reaches the target; none where none does, or cells are needed.
std::optional<int> first_reaching(Grid& grid, const std::vector<int>& order, int64_t cap) {
  for (const int place : order) {
    grid.add_first(place, cap);
    if (!grid.needed().empty()) return std::nullopt;
    if (any_reached(grid.trials())) return place;
  }
  return std::nullopt;
}

using CapAfter = std::function<int64_t(const std::vector<RateTrial>&)>;

// Longer at the edge where the best lies, until it lies within or cells are needed.
void grow(Grid& grid, const CapAfter& next_cap) {
  for (int times = 0; times < grows_times; ++times) {
    const std::vector<RateTrial> trials = grid.trials();
    const int side = growth(trials);
    if (side == 0) return;
    const int edge = side > 0 ? grid.cells.rbegin()->first : grid.cells.begin()->first;
    for (int i = 1; i <= grows_by; ++i) grid.add(edge + side * i * step, next_cap(trials));
    if (!grid.needed().empty()) return;
  }
}

void add_beside_best(Grid& grid, const CapAfter& next_cap) {
  const std::vector<RateTrial> trials = grid.trials();
  const auto best = best_of(trials);
  if (!best) return;
  const int place = std::next(grid.cells.begin(), static_cast<int64_t>(*best))->first;
  for (const int beside : {place - 1, place + 1}) grid.add(beside, next_cap(trials));
}

}  // namespace

Tuning tuning(const SweepState& state, int64_t batch) {
  const SweepSettings& s = state.settings;
  Tuning out;
  if (!s.tunes()) {
    out.rate = s.rates[0];
    out.figure = s.cap ? static_cast<double>(*s.cap / cap_factor) : static_cast<double>(steps_by_pilot(state, batch));
    return out;
  }
  Grid grid{state, batch};
  const auto waits = [&] { return !(out.needed = grid.needed()).empty(); };
  const bool horizon = s.horizon;
  const int64_t first = horizon ? steps_by_pilot(state, batch) : first_cap(state, batch);
  const auto next_cap = [&](const std::vector<RateTrial>& trials) {
    return horizon ? first : cap_after(trials, first);
  };
  const bool given = !s.rates.empty();
  const int count = given ? static_cast<int>(s.rates.size()) : s.grid_points;
  const int apart = given ? 1 : step, centre = given ? count / 2 : 0;
  const int low = given ? 0 : -(count / 2) * step, high = low + (count - 1) * apart;
  // One run that reaches the target bounds what the others may take. It is looked for from the centre down, since a
  // rate that is too small is slow but one beyond the highest stable one takes its whole cap to miss; then up.
  std::vector<int> order;
  for (int place = centre; place >= low; place -= apart) order.push_back(place);
  for (int place = centre + apart; place <= high; place += apart) order.push_back(place);
  const std::optional<int> reached = first_reaching(grid, order, first);
  if (waits()) return out;
  if (out.why_none = grid.why_all_failed(); !out.why_none.empty()) return out;
  const int64_t cap = next_cap(grid.trials());
  for (const int place : order) grid.add(place, place == reached ? first : cap);
  if (waits()) return out;
  if (!given) {
    grow(grid, next_cap);
    if (waits()) return out;
    add_beside_best(grid, next_cap);
    if (waits()) return out;
  }
  out.trials = grid.trials();
  if (const auto best = best_of(out.trials)) {
    out.rate = out.trials[*best].rate, out.figure = out.trials[*best].figure;
    if (*best == 0) out.edge = "low";
    if (*best + 1 == out.trials.size()) out.edge = "high";
  } else {
    out.why_none = "no rate that was tried reached the target";
  }
  return out;
}

}  // namespace tapedeck
