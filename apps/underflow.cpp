#include "apps/underflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/tape_watch.h"

namespace tapedeck {
namespace {

constexpr double least_half = 0x1p-24;  // fp16's smallest number above 0, a subnormal one

class UnderflowWatch : public TapeWatch {
 public:
  explicit UnderflowWatch(double scale) : scale_(scale) {}
  void gradient(const char* op, const std::string& where, const Tensor& dy) override {
    const std::string name = where + " " + op;
    auto layer = std::find_if(layers.begin(), layers.end(), [&](const LayerUnderflow& l) { return l.layer == name; });
    if (layer == layers.end()) layer = layers.insert(layers.end(), {name});
    for (const double value : dy.doubles()) {
      const double size = std::abs(value);
      ++layer->numbers;
      layer->lost += size > 0 && size < least_half;
      layer->lost_scaled += size > 0 && size * scale_ < least_half;
    }
  }
  std::vector<LayerUnderflow> layers;

 private:
  double scale_;
};

}  // namespace

std::vector<LayerUnderflow> underflow(const Config& config, Device device, const Learner& learner, double scale) {
  Config plain = config;
  plain.precision = "fp32";
  const Problem problem(plain, device, DType::f32);
  Learner twin(plain, problem, static_cast<uint64_t>(config.seed), device, DType::f32);
  copy(twin.parameters.values(), learner.parameters.values());
  const std::vector<int32_t>& rows = problem.data().train;
  const Inputs batch =
      problem.load(std::span(rows).first(std::min<size_t>(rows.size(), static_cast<size_t>(config.batch))));
  UnderflowWatch watch(scale);
  learn(twin, problem, batch, {true, static_cast<uint64_t>(config.seed), 0}, 1);
  return watch.layers;
}

std::string underflow_text(const std::vector<LayerUnderflow>& layers, double scale) {
  std::string out = fmt::format(
      "gradients that fp16 would lose (not 0, but below 2^-24 = 6e-8), in one batch, measured in f32\n"
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
