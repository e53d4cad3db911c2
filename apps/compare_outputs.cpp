#include "apps/compare_outputs.h"

#include <algorithm>
#include <cmath>

#include "apps/stats.h"

namespace tapedeck {
namespace {

constexpr size_t most_examples = 256;

struct Outputs {
  std::vector<double> values;
  std::vector<std::string> parameters;  // path and shape of each
  int64_t examples = 0, choices = 0;    // numbers of which one is the largest: 1 for numbers to predict
};

// Of the model of these options with these weights, on the first examples of the validation part.
Outputs outputs_of(const Config& config, const std::vector<double>& weights) {
  const Device device = prepare_machine(config);
  const DType dtype = find_precision(config);
  const Problem problem(config, device, dtype);
  Learner learner(config, problem, static_cast<uint64_t>(config.seed), device, dtype);
  Outputs out;
  for (const Parameter* p : learner.parameters.all()) out.parameters.push_back(p->path + " " + p->shape.str());
  const Tensor& values = learner.parameters.values();
  if (values.count() != std::ssize(weights)) return out;
  with_dtype(values.dtype, [&]<class T>() {
    copy(values, Tensor::from(std::vector<T>(weights.begin(), weights.end()), values.shape));
  });
  learner.parameters.round_copies();
  const std::vector<int32_t>& held_back = problem.data().validation;
  const std::span rows = std::span(held_back).first(std::min(held_back.size(), most_examples));
  problem.score(learner.scoring(), rows, [&](std::span<const int32_t> batch, const std::vector<double>& outputs) {
    out.examples += std::ssize(batch);
    out.values.insert(out.values.end(), outputs.begin(), outputs.end());
  });
  out.choices = problem.outputs();
  return out;
}

Config reference(Config config) {
  config.precision = "fp64", config.device = "cpu", config.tf32 = false, config.loss_scale = "dynamic";
  return config;
}

double expected_error(const Config& config) {  // measurement of nets of a few layers; rounding grows with depth
  if (config.precision == "fp64") return 1e-12;
  if (config.precision == "fp16") return 3e-3;
  if (config.precision == "bf16") return 2e-2;
  return config.tf32 ? 1e-3 : 1e-5;
}

OutputError error_of(const Outputs& y, const Outputs& exact, const Config& config) {
  return {relative_error(y.values, exact.values), expected_error(config)};
}

void compare_decisions(OutputComparison& result, const Outputs& a, const Outputs& b) {
  const size_t choices = static_cast<size_t>(a.choices);
  double squares = 0;
  for (const double y : a.values) squares += y * y;
  const double usual = std::sqrt(squares / static_cast<double>(a.values.size()));
  std::vector<double> margins;
  for (size_t at = 0; at < a.values.size(); at += choices) {
    const std::span ours = std::span(a.values).subspan(at, choices), theirs = std::span(b.values).subspan(at, choices);
    const int64_t first = argmax(ours), second = argmax(theirs);
    ++result.decisions;
    if (first == second && first >= 0) continue;
    ++result.different;
    const bool both = first >= 0 && second >= 0;  // else one of them is not a number
    margins.push_back(both ? (ours[static_cast<size_t>(first)] - ours[static_cast<size_t>(second)]) / usual : INFINITY);
  }
  result.same = 1 - static_cast<double>(result.different) / static_cast<double>(result.decisions);
  if (margins.empty()) return;
  result.median_margin = median(margins);
  result.largest_margin = *std::max_element(margins.begin(), margins.end());
}

}  // namespace

std::optional<OutputComparison> compare_outputs(const Config& a, const Config& b, const std::vector<double>& weights) {
  const Outputs of_a = outputs_of(a, weights), of_b = outputs_of(b, weights);
  if (of_a.parameters != of_b.parameters || of_a.values.size() != of_b.values.size()) return std::nullopt;
  const Outputs exact = outputs_of(reference(a), weights);
  OutputComparison result{.examples = exact.examples,
                          .outputs = std::ssize(exact.values),
                          .a = error_of(of_a, exact, a),
                          .b = error_of(of_b, exact, b),
                          .same = {},
                          .median_margin = {},
                          .largest_margin = {}};
  if (exact.choices > 1) compare_decisions(result, of_a, of_b);
  return result;
}

}  // namespace tapedeck
