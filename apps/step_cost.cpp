#include "apps/step_cost.h"

#include <limits>

#include "engine/check.h"

namespace tapedeck {

double StepCost::balance() const {
  return per_example > 0 ? fixed / per_example : std::numeric_limits<double>::infinity();
}

StepCost fit_step_cost(std::span<const double> batches, std::span<const double> times) {
  // With u = 1/τ and v = B/τ: a·Σu² + c·Σuv = Σu and a·Σuv + c·Σv² = Σv.
  double u = 0, v = 0, uu = 0, uv = 0, vv = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    CHECK(times[i] > 0, "a step of {} examples took {}: there is no cost to fit", batches[i], times[i]);
    const double ui = 1 / times[i], vi = batches[i] / times[i];
    u += ui, v += vi, uu += ui * ui, uv += ui * vi, vv += vi * vi;
  }
  const double determinant = uu * vv - uv * uv;
  CHECK(determinant > 1e-12 * uu * vv, "the cost a + c·B of a step needs two batch sizes, got {} of one",
        batches.size());
  const StepCost free{(u * vv - v * uv) / determinant, (v * uu - u * uv) / determinant};
  if (free.fixed < 0) return {0, v / vv};
  if (free.per_example < 0) return {u / uu, 0};
  return free;
}

}  // namespace tapedeck
