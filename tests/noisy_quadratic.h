// A workload whose answer is known: minimise ½ mean h·θ² from gradients with noise of variance c/B in each coordinate,
//   θ' = (1 − a·h)θ − a·n,   E θ_t² = (1−ah)^{2t} θ_0² + [1 − (1−ah)^{2t}]·a·c/(B·h·(2−ah))
// so that the steps to a loss, with the best rate a at each batch size, can be computed.
#pragma once
#include <cstdint>
#include <vector>

#include "apps/sweep/cell.h"

namespace tapedeck {

struct NoisyQuadratic {
  std::vector<double> curvatures = {1, 0.1, 0.02};
  int copies = 16;     // coordinates of each
  double noise = 0.1;  // c
  uint64_t seed = 1;

  double expected_loss(double rate, double batch, double steps) const;
  // The least steps, a real number, with which the expected loss comes down to this; over all rates.
  double steps_to(double loss, double batch) const;
  CellResult run(const Cell& cell, double target) const;  // a simulated run, until it is confirmed or at its cap
};

}  // namespace tapedeck
