#include "apps/noise_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tapedeck {
namespace {

Json or_null(const Number& x) { return x && std::isfinite(*x) ? Json(*x) : Json(); }

}  // namespace

std::string why_no_noise(const Config& config) {
  const bool one_batch = config.accumulate == 1;
  if (config.model != "mlp" && one_batch)
    return "needs two batch sizes (a step is one batch here: --accumulate 2 or more compares its batches)";
  if (config.batch == 1 && one_batch)
    return "needs two batch sizes (a step is one example here: use a larger --batch or --accumulate)";
  return "";
}

NoiseWay find_noise_way(const Config& config) {
  if (!config.noise_scale || !why_no_noise(config).empty()) return NoiseWay::none;
  return config.model == "mlp" ? NoiseWay::examples : NoiseWay::batches;
}

std::string noise_way_text(const Config& config) {
  return find_noise_way(config) == NoiseWay::examples ? "per example"
                                                      : fmt::format("micro-batches of {}", config.batch);
}

NoiseMeter::NoiseMeter(int64_t population)
    : population(population), average(static_cast<double>(std::max<int64_t>(population, least_half_life))) {}

// With c of gradient_squares.h: S1 = mean |n·cᵢ|² = n · Σ |cᵢ|², S2 = |Σ cᵢ|².
void NoiseMeter::add(const StepRecord& record, int64_t parts, int64_t examples) {
  if (!record.went) return;
  const double s1 = static_cast<double>(parts) * record.squares, s2 = record.norm * record.norm;
  if (parts < 2 || !std::isfinite(s1) || !std::isfinite(s2)) {
    ++left_out;
    return;
  }
  average.add(*noise_sample(s1, s2, parts, examples / parts, population), examples);
}

NoiseSummary noise_summary(const Config& config, const NoiseMeter& meter) {
  NoiseSummary out;
  out.samples = 0, out.left_out = meter.left_out;
  const std::optional<NoiseEstimate> estimate = meter.average.estimate();
  if (!estimate) {
    const std::string why = why_no_noise(config);
    out.state = "not available: " + (!why.empty()         ? why
                                     : meter.left_out > 0 ? "needs two batch sizes (no step had two parts of one size)"
                                                          : std::string("no step has been measured"));
    return out;
  }
  out.value = estimate->scale, out.low = estimate->low, out.high = estimate->high;
  out.square = estimate->square, out.trace = estimate->trace, out.samples = estimate->samples;
  out.state = estimate->scale ? "resolved" : "not resolved";
  out.how = noise_way_text(config);
  return out;
}

void add_noise(Json& line, const NoiseMeter& meter) {
  const std::optional<NoiseEstimate> estimate = meter.average.estimate();
  line["noise_scale"] = estimate ? or_null(estimate->scale) : Json();
  line["gradient_square"] = estimate ? or_null(estimate->square) : Json();
  line["noise_trace"] = estimate ? or_null(estimate->trace) : Json();
}

std::string noise_text(const NoiseSummary& s) {
  std::string out = "gradient noise scale: " + s.state;
  if (s.how) {
    if (s.value)
      out =
          fmt::format("gradient noise scale: B_simple = tr Σ / |G|² = {:.4g} examples, 95 % interval [{:.4g}, {:.4g}]",
                      *s.value, s.low.value_or(NAN), s.high.value_or(NAN));
    out += fmt::format(" (|G|² {:.3g}, tr Σ {:.3g}; {}, n = {} steps", s.square.value_or(NAN), s.trace.value_or(NAN),
                       *s.how, s.samples.value_or(0));
    if (s.left_out.value_or(0) > 0) out += fmt::format(", {} left out whose parts are not of one size", *s.left_out);
    out += ")";
  }
  if (s.value) out += "\n  it is not the critical batch size, which only runs at several batch sizes show";
  return out;
}

Json to_json(const NoiseMeter& meter) {
  const NoiseScale::State state = meter.average.state();
  Json blocks = Json::array();
  for (const NoiseScale::Block& b : state.blocks) blocks.push_back({b.square, b.trace, b.weight, b.samples});
  return {{"half_life", state.half_life},
          {"blocks", blocks},
          {"length", state.length},
          {"samples", state.samples},
          {"left_out", meter.left_out}};
}

NoiseMeter noise_meter(const Json& j) {
  NoiseScale::State state{
      .half_life = j.at("half_life"), .blocks = {}, .length = j.at("length"), .samples = j.at("samples")};
  for (const Json& b : j.at("blocks")) state.blocks.push_back({b.at(0), b.at(1), b.at(2), b.at(3)});
  return {NoiseScale(state), j.at("left_out")};
}

}  // namespace tapedeck
