#include "apps/gradcheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/experiment.h"
#include "apps/recompute_plan.h"
#include "apps/record.h"
#include "data/loader.h"
#include "engine/random.h"

namespace tapedeck {
namespace {

constexpr int64_t samples_per_parameter = 20;
constexpr double loosest = 0.01;  // a check that tolerates more would compare noise with noise
const double eps64 = eps(DType::f64);

std::vector<size_t> sample(const Parameter& p, const std::vector<double>& gradient, int64_t samples) {
  std::set<size_t> chosen;
  const auto larger = [](double a, double b) { return std::abs(a) < std::abs(b); };
  chosen.insert(static_cast<size_t>(std::max_element(gradient.begin(), gradient.end(), larger) - gradient.begin()));
  const bool few = std::ssize(gradient) <= samples;
  for (size_t i = 0; i < static_cast<size_t>(few ? std::ssize(gradient) : samples); ++i)
    chosen.insert(few ? i : random_bits(1, 0, site_of(p.path), i).word[0] % gradient.size());
  return {chosen.begin(), chosen.end()};
}

// The derivative of `loss` by one entry of w, with a step of h.
double central_difference(const Tensor& w, size_t entry, double h, const std::function<double()>& loss) {
  Tensor one;  // the entry as a tensor of its own, on whatever device
  one.dtype = w.dtype;
  one.data = w.data.slice(entry * sizeof(double), sizeof(double));
  const double value = one.item();
  const double above = value + h, below = value - h;
  fill(one, above);
  const double loss_above = loss();
  fill(one, below);
  const double loss_below = loss();
  fill(one, value);
  return (loss_above - loss_below) / (above - below);
}

GradientCheck check_one(const Parameter& p, const Parameter& twin, const std::function<double()>& loss, int64_t samples,
                        double terms) {
  const std::vector<double> gradient = p.value.grad->sum.doubles(), values = twin.value.doubles();
  const std::vector<size_t> entries = sample(p, gradient, samples);
  GradientCheck out{p.path, std::ssize(entries), 0, 0, 0, "ok"};

  // A step that crosses a kink of relu says nothing about the slope here: a second, much shorter one then decides.
  const double h = std::cbrt(eps64), shorter = h / 16;
  std::vector<double> far, near;
  for (const size_t i : entries) {
    const double scale = std::max(1.0, std::abs(values[i]));
    far.push_back(central_difference(twin.value, i, h * scale, loss));
    near.push_back(central_difference(twin.value, i, shorter * scale, loss));
  }
  double largest = 0;
  for (size_t k = 0; k < entries.size(); ++k) {
    if (!std::isfinite(gradient[entries[k]]) || !std::isfinite(near[k])) out.verdict = "not finite";
    out.largest_gradient = std::max(out.largest_gradient, std::abs(gradient[entries[k]]));
    largest = std::max({largest, std::abs(gradient[entries[k]]), std::abs(near[k])});
  }
  // Rounding of the two losses over 2h, the cubic term of the longer step, and rounding of the sums in backward.
  const auto tolerance = [&](double step) {
    const double differences = 16 * eps64 * std::sqrt(terms) * std::max(1.0, std::abs(loss())) / step + 10 * h * h;
    return differences / largest + 8 * eps(p.value.dtype) * std::sqrt(terms);
  };
  out.tolerance = tolerance(h);
  const double coarser = tolerance(shorter) / out.tolerance;
  if (out.verdict == "ok" && !(out.tolerance < loosest)) out.verdict = "nothing to compare";
  if (out.verdict != "ok") return out;
  for (size_t k = 0; k < entries.size(); ++k) {
    const double g = gradient[entries[k]];
    // The shorter step's rounding is larger: its error counts in units of its own tolerance.
    out.error = std::max(out.error, std::min(std::abs(g - far[k]), std::abs(g - near[k]) / coarser) / largest);
  }
  if (out.error > out.tolerance) out.verdict = "wrong";
  return out;
}

std::string table(const std::vector<GradientCheck>& checks) {
  size_t width = 9;
  for (const GradientCheck& c : checks) width = std::max(width, c.path.size());
  std::string out = fmt::format("{:<{}}  {:>7}  {:>12}  {:>14}  {:>9}  {}\n", "parameter", width, "checked",
                                "largest |g|", "relative error", "tolerance", "verdict");
  for (const GradientCheck& c : checks)
    out += fmt::format("{:<{}}  {:>7}  {:>12.3g}  {:>14.2e}  {:>9.1e}  {}\n", c.path, width, c.checked,
                       c.largest_gradient, c.error, c.tolerance, c.verdict);
  return out;
}

Json document(const Config& config, const std::vector<GradientCheck>& checks) {
  Json rows = Json::array();
  for (const GradientCheck& c : checks)
    rows.push_back({{"parameter", c.path},
                    {"checked", c.checked},
                    {"largest_gradient", c.largest_gradient},
                    {"error", c.error},
                    {"tolerance", c.tolerance},
                    {"verdict", c.verdict}});
  return {{"format_version", kFormatVersion}, {"precision", config.precision}, {"ok", all_ok(checks)}, {"rows", rows}};
}

}  // namespace

std::vector<GradientCheck> check_gradients(const ParameterSet& parameters, const ParameterSet& twin,
                                           const std::function<double()>& loss, int64_t samples, double terms) {
  std::vector<GradientCheck> out;
  for (size_t i = 0; i < parameters.all().size(); ++i)
    out.push_back(check_one(*parameters.all()[i], *twin.all()[i], loss, samples, terms));
  return out;
}

bool all_ok(const std::vector<GradientCheck>& checks) {
  return !checks.empty() &&
         std::all_of(checks.begin(), checks.end(), [](const GradientCheck& c) { return c.verdict == "ok"; });
}

int run_gradcheck(const Config& config) {
  const Device device = prepare_machine(config);
  const uint64_t seed = static_cast<uint64_t>(config.seed);
  const Pass pass{true, seed, 0};
  const Problem problem(config, device, find_precision(config)), exact(config, device, DType::f64);
  say_what_is_slow(config);
  steps_per_epoch(config, problem);  // refuses a batch that is too large
  const Config planned = with_recompute_planned(config, problem, device);
  Learner learner(planned, problem, seed, device, find_precision(config)),
      twin(planned, exact, seed, device, DType::f64);
  for (size_t i = 0; i < learner.parameters.all().size(); ++i) {
    const Parameter& p = *learner.parameters.all()[i];
    copy(twin.parameters.all()[i]->value, Tensor::from(p.value.doubles(), p.shape));
  }

  Loader loader(problem.data().train, config.batch, seed);
  const std::span<const int32_t> batch = loader.next();
  learn(learner, problem, problem.load(batch), pass, 1);
  learner.parameters.complete_gradients();
  const Inputs inputs = exact.load(batch);
  const auto loss = [&] {
    const NoTape off;
    return exact.loss((*twin.model)(inputs.x, pass), inputs).item();
  };
  const double terms =
      static_cast<double>(std::ssize(batch) * problem.answers()) * static_cast<double>(learner.model->widest());
  const std::vector<GradientCheck> checks =
      check_gradients(learner.parameters, twin.parameters, loss, samples_per_parameter, terms);

  if (config.json)
    std::cout << json_text(document(config, checks)) << "\n";
  else
    std::cout << table(checks);
  return all_ok(checks) ? exit_done : exit_failed;
}

}  // namespace tapedeck
