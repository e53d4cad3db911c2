// The learning rate as a pure function of the optimizer step, counted from 0.
//   warm-up   base · (step + 1) / warmup              while step < warmup
//   constant  base
//   linear    from base down to base / 10 along a line over the steps that are left
//   cosine    from base down to base / 10 along half a cosine [Loshchilov & Hutter 2017, arXiv:1608.03983]
// A run whose length changes on the way keeps the rate that it has: what is left of the decay is spread over the steps
// that are left.
#pragma once
#include <cmath>
#include <cstdint>

#include "engine/hd.h"

namespace tapedeck {

struct Schedule {
  enum class Kind : uint8_t { constant, linear, cosine };
  Kind kind = Kind::constant;
  double base = 1e-3;
  int64_t warmup = 0;    // steps
  int64_t total = 0;     // steps of the whole run, warm-up included; constant does not look at it
  int64_t bent_at = 0;   // the step at which the run's length last changed; 0: never
  double bent_done = 0;  // the share of the decay that was done by then

  // The share of the decay that is done at this step, 0 to 1; the last step has the last rate.
  HD double done(int64_t step) const {
    const int64_t from = warmup > bent_at ? warmup : bent_at;
    const int64_t span = total - 1 - from > 1 ? total - 1 - from : 1;
    const double share = double(step - from) / double(span);
    return bent_done + (1 - bent_done) * (share < 0 ? 0 : share > 1 ? 1 : share);
  }

  // The same schedule from `step` on, for a run that now ends after new_total steps.
  Schedule bent(int64_t step, int64_t new_total) const {
    Schedule next = *this;
    next.bent_done = done(step), next.bent_at = step, next.total = new_total;
    return next;
  }

  HD double rate(int64_t step) const {
    if (step < warmup) return base * double(step + 1) / double(warmup);
    const double last = base / 10;
    if (kind == Kind::linear) return base + (last - base) * done(step);
    if (kind == Kind::cosine) return last + (base - last) * 0.5 * (1 + std::cos(done(step) * 3.14159265358979323846));
    return base;
  }
};

}  // namespace tapedeck
