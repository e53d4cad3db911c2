#include "apps/compare_outputs.h"

#include <algorithm>
#include <cmath>

#include "apps/options.h"
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
  Config plain = config;
  plain.recompute = {};  // of training; scoring keeps nothing
  Learner learner(plain, problem, static_cast<uint64_t>(config.seed), device, dtype);
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

}  // namespace

void compare_decisions(OutputComparison& result, const std::vector<double>& a, const std::vector<double>& b,
                       int64_t choices) {
  const size_t step = static_cast<size_t>(choices);
  double squares = 0;
  for (const double y : a) squares += y * y;
  const double usual = std::sqrt(squares / static_cast<double>(a.size()));
  std::vector<double> margins;
  for (size_t at = 0; at < a.size(); at += step) {
    const std::span ours = std::span(a).subspan(at, step), theirs = std::span(b).subspan(at, step);
    const int64_t first = argmax(ours), second = argmax(theirs);
    ++result.decisions;
    if (first == second && first >= 0) continue;
    ++result.different;
    const bool both = first >= 0 && second >= 0;  // else one of them is not a number
    const double margin =
        both ? (ours[static_cast<size_t>(first)] - ours[static_cast<size_t>(second)]) / usual : INFINITY;
    margins.push_back(std::isfinite(margin) ? margin : INFINITY);  // of infinite outputs, no number would be one
  }
  result.same = 1 - static_cast<double>(result.different) / static_cast<double>(result.decisions);
  if (margins.empty()) return;
  result.median_margin = median(margins);
  result.largest_margin = *std::max_element(margins.begin(), margins.end());
}

// Seen by `tapedeck compare precision` on blobs, digits, spirals and task:copy, 2 and 60 steps in (n = 8 models, mlps
// of up to 6 hidden layers and gpts): fp32 7.8e-8 to 3.7e-7, fp16 2.8e-4 to 9.7e-4, bf16 2.4e-3 to 8.3e-3. One that
// computes in the other's type falls outside.
OutputError output_error(double relative, const Config& config) {
  if (config.precision == "fp64") return {relative, 0, 1e-12};
  if (config.precision == "bf16") return {relative, 1.6e-3, 1.6e-2};
  if (config.precision == "fp16" || config.tf32) return {relative, 1e-4, 1.6e-3};
  return {relative, 1e-8, 1e-5};
}

std::string other_function(const Config& a, const Config& b) {
  constexpr const char* which[] = {"model", "hidden", "layers", "heads",   "width",      "untied", "activation",
                                   "loss",  "data",   "label",  "context", "validation", "test",   "bytes"};
  for (const char* name : which) {
    const Option& option = *find_option(name, command_bit("train"));
    const std::string of_a = value_text(a, option), of_b = value_text(b, option);
    if (of_a != of_b) return text("{} {} / {}", name, of_a, of_b);
  }
  return "";
}

std::optional<OutputComparison> compare_outputs(const Config& a, const Config& b, const std::vector<double>& weights) {
  if (weights.empty() || !other_function(a, b).empty()) return std::nullopt;
  const Outputs of_a = outputs_of(a, weights), of_b = outputs_of(b, weights);
  if (of_a.parameters != of_b.parameters || of_a.values.size() != of_b.values.size()) return std::nullopt;
  const Outputs exact = outputs_of(reference(a), weights);
  OutputComparison result{.examples = exact.examples,
                          .outputs = std::ssize(exact.values),
                          .a = output_error(relative_error(of_a.values, exact.values), a),
                          .b = output_error(relative_error(of_b.values, exact.values), b),
                          .same = {},
                          .median_margin = {},
                          .largest_margin = {}};
  if (exact.choices > 1) compare_decisions(result, of_a.values, of_b.values, exact.choices);
  return result;
}

}  // namespace tapedeck
