// Loss scaling. fp16 has no number below 6e-8, and many gradients lie there: the loss is multiplied by a scale before
// the backward pass, and the gradients divided by it, in f32, before anything looks at them [Micikevicius et al. 2018,
// §3.2]. The scale is sought while training: an overflow skips the step and halves it, 2,000 good steps double it.
//
// The update is PyTorch's GradScaler (_amp_update_scale_), number by number, but for a floor that it does not have: a
// scale that falls on and on says that the forward pass overflows, which no scale mends.
#pragma once
#include <cstdint>

#include "engine/hd.h"

namespace tapedeck {

struct ScalerRule {
  enum class Kind : uint8_t { none, fixed, dynamic };
  Kind kind = Kind::none;
  double initial = 65536;  // the scale of fixed
  double growth = 2, backoff = 0.5;
  int32_t interval = 2000;  // good steps in a row that let the scale grow
  double floor = 0;         // a scale that would fall below it stays; below 1 is allowed
  int32_t give_up = 30;  // steps skipped in a row that end the run: they halve 65536 to 6e-5, or to --loss-scale-floor

  bool on() const { return kind != Kind::none; }
  // Failed steps in a row that end a run. Without a scale there is nothing that could mend the next one.
  HD int32_t patience() const { return kind == Kind::none ? 1 : give_up; }
};

struct ScalerState {
  float scale = 1;
  int32_t good = 0;                                // steps since the scale last changed, or a step was skipped
  int32_t in_a_row = 0;                            // steps skipped since the last good one
  int64_t skipped = 0, growths = 0, backoffs = 0;  // in all
};

inline ScalerState first_state(const ScalerRule& rule) {
  return {.scale = rule.on() ? static_cast<float>(rule.initial) : 1.0f};
}

// The state after a step whose gradients were finite, or not.
HD ScalerState next(ScalerState s, const ScalerRule& rule, bool overflow) {
  const bool dynamic = rule.kind == ScalerRule::Kind::dynamic;
  if (overflow) {
    ++s.skipped, ++s.in_a_row;
    s.good = 0;
    const float lower = float(double(s.scale) * rule.backoff);
    if (dynamic && lower > 0 && double(lower) >= rule.floor) s.scale = lower, ++s.backoffs;
    return s;
  }
  s.in_a_row = 0;
  if (!dynamic || ++s.good < rule.interval) return s;
  s.good = 0;
  const float higher = float(double(s.scale) * rule.growth);
  if (higher - higher == 0) s.scale = higher, ++s.growths;  // finite
  return s;
}

}  // namespace tapedeck
