// The learning rate as a pure function of the optimizer step, counted from 0.
//   warm-up   base · (step + 1) / warmup              while step < warmup
//   constant  base
//   linear    from base down to base / 10 along a line over the steps that are left
//   cosine    from base down to base / 10 along half a cosine [Loshchilov & Hutter 2017, arXiv:1608.03983]
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tapedeck {

struct Schedule {
  enum class Kind : uint8_t { constant, linear, cosine };
  Kind kind = Kind::constant;
  double base = 1e-3;
  int64_t warmup = 0;  // steps
  int64_t total = 0;   // steps of the whole run, warm-up included; constant does not look at it

  double rate(int64_t step) const {
    if (step < warmup) return base * static_cast<double>(step + 1) / static_cast<double>(warmup);
    const double span =
        static_cast<double>(std::max<int64_t>(1, total - 1 - warmup));  // the last step has the last rate
    const double done = std::min(1.0, static_cast<double>(step - warmup) / span);
    const double last = base / 10;
    if (kind == Kind::linear) return base + (last - base) * done;
    if (kind == Kind::cosine) return last + (base - last) * 0.5 * (1 + std::cos(done * 3.14159265358979323846));
    return base;
  }
};

}  // namespace tapedeck
