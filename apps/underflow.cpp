#include "apps/underflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/half.h"

namespace tapedeck {

void UnderflowWatch::gradient(const char* op, const std::string& where, const Tensor& dy) {
  const std::string name = where + " " + op;
  auto layer = std::find_if(layers.begin(), layers.end(), [&](const LayerUnderflow& l) { return l.layer == name; });
  if (layer == layers.end()) layer = layers.insert(layers.end(), {name});
  const auto lost = [](double x) { return x != 0 && float(Half(x)) == 0; };
  for (const double value : dy.doubles()) {
    ++layer->numbers;
    layer->lost += lost(value);
    layer->lost_scaled += value != 0 && lost(value * scale_);
  }
}

std::vector<LayerUnderflow> underflow(const Config& config, Device device, const Learner& learner, double scale) {
  Config plain = config;
  plain.precision = "fp32";
  const Problem problem(plain, device, DType::f32);
  Learner twin(plain, problem, static_cast<uint64_t>(config.seed), device, DType::f32);
  copy(twin.parameters.values(), cast(learner.parameters.values(), DType::f32));
  const std::vector<int32_t>& rows = problem.data().train;
  const Inputs batch =
      problem.load(std::span(rows).first(std::min<size_t>(rows.size(), static_cast<size_t>(config.batch))));
  UnderflowWatch watch(scale);
  learn(twin, problem, batch, {true, static_cast<uint64_t>(config.seed), 0}, 1);
  return watch.layers;
}

std::string underflow_text(const std::vector<LayerUnderflow>& layers, double scale) {
  std::string out = fmt::format(
      "gradients that fp16 would lose (not 0, but at most 2^-25 = 3e-8, which rounds to 0), in one batch, measured in "
      "f32\n"
      "{:<32} {:>9} {:>10} {:>14}\n",
      "layer", "numbers", "unscaled", fmt::format("times {}", scale));
  for (const LayerUnderflow& l : layers) {
    const double n = static_cast<double>(l.numbers) / 100;
    out += fmt::format("{:<32} {:>9} {:>8.2f} % {:>12.2f} %\n", l.layer, l.numbers, static_cast<double>(l.lost) / n,
                       static_cast<double>(l.lost_scaled) / n);
  }
  return out;
}

Json underflow_json(const std::vector<LayerUnderflow>& layers, double scale) {
  Json rows = Json::array();
  for (const LayerUnderflow& l : layers)
    rows.push_back({{"layer", l.layer}, {"numbers", l.numbers}, {"lost", l.lost}, {"lost_scaled", l.lost_scaled}});
  return {{"scale", scale}, {"layers", std::move(rows)}};
}

}  // namespace tapedeck
