// The learning rate as a pure function of the optimizer step, counted from 0.
//   warm-up   base · (step + 1) / warmup              while step < warmup
//   constant  base
//   linear    from base down to base / 10 along a line over the steps that are left
//   cosine    from base down to base / 10 along half a cosine [Loshchilov & Hutter 2017, arXiv:1608.03983]
// A run whose length changes on the way keeps the rate that it has: what is left of the decay is spread over the steps
// that are left.
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
  int64_t bent_at = 0;   // the step at which the run's length last changed; 0: never
  double bent_done = 0;  // the share of the decay that was done by then

  // The share of the decay that is done at this step, 0 to 1; the last step has the last rate.
  double done(int64_t step) const {
    const int64_t from = std::max(warmup, bent_at);
    const double span = static_cast<double>(std::max<int64_t>(1, total - 1 - from));
    const double share = std::clamp(static_cast<double>(step - from) / span, 0.0, 1.0);
    return bent_done + (1 - bent_done) * share;
  }

  // The same schedule from `step` on, for a run that now ends after new_total steps.
  Schedule bent(int64_t step, int64_t new_total) const {
    Schedule next = *this;
    next.bent_done = done(step), next.bent_at = step, next.total = new_total;
    return next;
  }

  double rate(int64_t step) const {
    if (step < warmup) return base * static_cast<double>(step + 1) / static_cast<double>(warmup);
    const double last = base / 10;
    if (kind == Kind::linear) return base + (last - base) * done(step);
    if (kind == Kind::cosine) return last + (base - last) * 0.5 * (1 + std::cos(done(step) * 3.14159265358979323846));
    return base;
  }
};

}  // namespace tapedeck
