// What profiling costs, measured beside the run: steps of the same model and batch size on made-up examples, with and
// without a tracer, in turns. Never told from a profiled step alone.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "apps/experiment.h"
#include "apps/stats.h"

namespace tapedeck {

struct ProfileOverhead {
  std::optional<RatioInterval> on;       // profiled over plain steps
  std::optional<RatioInterval> control;  // plain over plain: how far apart two equal things are here
  int steps_a_round = 0;                 // of each kind; a round counts with the fastest: what disturbs only adds
};

// Takes about two seconds, more where a single step takes longer than a tenth of one. `stop` is asked before every
// step; true: null, without delay.
std::optional<ProfileOverhead> measure_overhead(
    const Config& config, const Problem& problem, Device device, DType dtype,
    const std::function<bool()>& stop = [] { return false; });
std::string overhead_text(const ProfileOverhead& overhead);

}  // namespace tapedeck
