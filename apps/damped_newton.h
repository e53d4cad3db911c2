// The maximum of a smooth function of three parameters in a box, by Newton's method with analytic derivatives. Where
// the function is not concave, or a step overshoots, the step is damped towards the gradient's direction [Levenberg
// 1944, Marquardt 1963]; a parameter that is pushed against a side of the box stays there while that holds. No
// randomness.
#pragma once
#include <array>
#include <functional>

namespace tapedeck {

using Vector3 = std::array<double, 3>;

struct LocalView {  // the function around a point
  double value = 0;
  Vector3 gradient = {};
  std::array<Vector3, 3> hessian = {};  // symmetric
};

struct Box {
  Vector3 low, high;
};

struct Maximum {
  Vector3 at = {};
  double value = 0;
  bool converged = false;
  int evaluations = 0;
};

Maximum maximise(const std::function<LocalView(const Vector3&)>& function, Vector3 start, const Box& box);

}  // namespace tapedeck
