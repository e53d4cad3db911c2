#include "apps/sweep/extra.h"

#include <algorithm>
#include <cmath>

#include "engine/check.h"

namespace tapedeck {
namespace {

struct Known {  // a symmetric 2×2 matrix
  double a = 0, b = 0, c = 0;
  void add(double w, double times) { a += times, b += times * w, c += times * w * w; }
  double variance() const { return a / (a * c - b * b); }  // (M⁻¹)₂₂
};

struct Size {
  Cell next;
  double n = 0, seconds = 0;
};

}  // namespace

std::optional<Cell> extra_cell(const SweepState& state) {
  std::vector<Size> sizes;
  std::vector<ScalingRun> runs;
  for (const int64_t batch : state.settings.batches) {
    std::vector<Cell> cells = runs_of(state, batch, tuning(state, batch));
    if (cells.empty()) continue;
    Cell next = cells.back();
    for (++next.seed; state.find(next); ++next.seed) cells.push_back(next);
    Size size{next};
    for (const Cell& cell : cells) {
      if (!state.find(cell)) return std::nullopt;  // the plan is not at its end
      const CellResult& result = *state.find(cell);
      if (result.status == CellResult::Status::failed) continue;
      runs.push_back(scaling_run(cell, result, state.targets->tightest(), false));
      size.n += 1, size.seconds += result.wall_seconds;
    }
    if (size.n > 0) sizes.push_back(size);
  }
  if (!can_fit(group_by_size(runs))) return std::nullopt;
  const ScalingLaw law = fit_scaling_law(runs);
  if (law.end != ScalingLaw::End::none) return std::nullopt;

  const auto weight = [&](const Size& size) {
    return law.b_crit / (static_cast<double>(size.next.batch) + law.b_crit);
  };
  Known known;
  for (const Size& size : sizes) known.add(weight(size), size.n);
  std::optional<Cell> best;
  double most = 0;
  for (const Size& size : sizes) {
    Known more = known;
    more.add(weight(size), 1);
    const double gain = (known.variance() - more.variance()) / std::max(1e-9, size.seconds / size.n);
    if (gain > most) most = gain, best = size.next;
  }
  return best;
}

}  // namespace tapedeck
