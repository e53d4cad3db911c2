// NoiseMeter: what --noise-scale measures, step by step. What a step's parts are follows from the model: where rows are
// examples every example is one, whatever the batch; else the batches of an accumulation window are.
//
// A sample's weight halves with every epoch that comes after it, or with every `least_half_life` examples where an
// epoch is shorter: in examples, so that runs of different batch sizes average over the same stretch of training, and
// not a matter of the run's length, so that one that goes on longer has the same figures on the way.
#pragma once
#include <string>

#include "apps/config.h"
#include "apps/noise_scale.h"
#include "apps/summary.h"
#include "ops/step_state.h"

namespace tapedeck {

enum class NoiseWay : uint8_t { none, examples, batches };
NoiseWay find_noise_way(const Config& config);     // none: not asked for, or not available
std::string why_no_noise(const Config& config);    // "" where there is a way
std::string noise_way_text(const Config& config);  // "per example", "micro-batches of 12"

struct NoiseMeter {
  static constexpr int64_t least_half_life = 8192;
  explicit NoiseMeter(int64_t population);  // training examples, which are drawn without being put back
  NoiseMeter(const NoiseScale& average, int64_t left_out) : average(average), left_out(left_out) {}

  // A finished step of so many parts of one size, 0 where they differ. A skipped one says nothing.
  void add(const StepRecord& record, int64_t parts, int64_t examples);

  int64_t population = 0;  // of noise_sample(); no part of what is saved: it is that of the data as they are now
  NoiseScale average;
  int64_t left_out = 0;  // steps without two parts of one size, or whose squares are not finite
};

NoiseSummary noise_summary(const Config& config, const NoiseMeter& meter);
void add_noise(Json& line, const NoiseMeter& meter);  // to a line of metrics
std::string noise_text(const NoiseSummary& summary);  // a line for people

Json to_json(const NoiseMeter& meter);
NoiseMeter noise_meter(const Json& json);  // what to_json wrote; throws nlohmann's exceptions

}  // namespace tapedeck
