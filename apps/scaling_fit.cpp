#include "apps/scaling_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "apps/stats.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

std::vector<SizeRow> size_rows(const ScalingRuns& data, const ScalingLaw& law) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::map<double, std::vector<double>> by_size, middles, by_clock;  // infinite where missed
  for (const ScalingRun& run : data.runs) {
    by_size[run.batch].push_back(run.reached() ? run.steps : infinity);
    middles[run.batch].push_back(run.middle());
    if (run.seconds > 0 || !run.reached()) by_clock[run.batch].push_back(run.reached() ? run.seconds : infinity);
  }
  std::vector<SizeRow> rows;
  for (const auto& [batch, steps] : by_size) {
    const double unit = data.cost ? batch : 1;
    SizeRow row = {.batch = batch,
                   .n = static_cast<int>(steps.size()),
                   .reached = static_cast<int>(
                       std::count_if(steps.begin(), steps.end(), [](double s) { return std::isfinite(s); })),
                   .median = median(steps) * unit,
                   .interval = std::nullopt,
                   .fitted = law.steps(batch) * unit,
                   .residual = std::nullopt};
    if (const auto interval = median_interval(steps))
      row.interval = Bounds{interval->low * unit, interval->high * unit};
    if (const std::vector<double>& seconds = by_clock[batch]; data.has_seconds && seconds.size() == steps.size()) {
      row.seconds = median(seconds);
      if (const auto interval = median_interval(seconds)) row.seconds_interval = Bounds{interval->low, interval->high};
    }
    if (std::isfinite(row.median)) row.residual = std::log(median(middles[batch]) / law.steps(batch));
    rows.push_back(row);
  }
  return rows;
}

double rms_residual(const std::vector<SizeRow>& rows) {
  double sum = 0, n = 0;
  for (const SizeRow& row : rows)
    if (row.residual) sum += *row.residual * *row.residual, ++n;
  return n > 0 ? std::sqrt(sum / n) : 0;
}

// Reasons that hold whether or not the sizes bracket B_crit.
std::vector<std::string> reasons(const ScalingFit& fit) {
  constexpr int kFewSizes = 5;
  constexpr double kWide = 4, kMoves = 2;
  std::vector<std::string> out;
  const auto sizes =
      std::count_if(fit.rows.begin(), fit.rows.end(), [](const SizeRow& row) { return row.reached > 0; });
  if (sizes < kFewSizes)
    out.push_back(fmt::format("{} batch sizes, of which {}; wants {} or more", sizes,
                              sizes == 3 ? "every draw has all, so that the interval knows nothing of how they scatter"
                                         : "a bootstrap makes few different draws",
                              kFewSizes));
  const Bounds& b = fit.bootstrap.b_crit;
  if (!(b.high <= kWide * b.low))
    out.push_back(b.low > 0 && std::isfinite(b.high)
                      ? fmt::format("the ends of its interval are {:.1f} times apart", b.high / b.low)
                      : "its interval has no end on one side");
  if (fit.left_out && !(fit.left_out->high <= kMoves * fit.left_out->low))
    out.push_back(fmt::format("one size left out moves it between {} and {}", three_digits(fit.left_out->low),
                              three_digits(fit.left_out->high)));
  return out;
}

}  // namespace

std::string three_digits(double x) {
  if (std::isinf(x)) return "infinity";
  if (std::abs(x) < 1000 || std::abs(x) > 1e9) return fmt::format("{:.3g}", x);
  const double unit = std::pow(10, std::floor(std::log10(std::abs(x))) - 2);
  return fmt::format("{:.0f}", std::round(x / unit) * unit);
}

int ScalingFit::reached() const {
  return static_cast<int>(
      std::count_if(data.runs.begin(), data.runs.end(), [](const ScalingRun& run) { return run.reached(); }));
}

std::string ScalingFit::verdict() const {
  const std::string poor = why_poor.empty() ? "" : "poorly determined";
  if (sides.holds()) return poor.empty() ? "determined" : poor;
  return poor.empty() ? "extrapolated" : "extrapolated and " + poor;
}

std::vector<std::string> ScalingFit::warnings() const {
  std::vector<std::string> out;
  const auto bound = [](const char* side, double b_crit) {
    return b_crit > 0 && std::isfinite(b_crit)
               ? fmt::format(". One-sided: B_crit is at {} {} (95 %)", side, three_digits(b_crit))
               : "";
  };
  const std::string at_least = bound("least", bootstrap.at_least), at_most = bound("most", bootstrap.at_most);
  if (law.end == ScalingLaw::End::no_floor)
    out.push_back("extrapolated: steps fall like 1/B at all sizes, larger ones are needed to find B_crit" + at_least);
  else if (!sides.above)
    out.push_back(
        fmt::format("extrapolated: no size of {} (2 B_crit) or more reached the target, so the curve is not "
                    "seen to flatten{}",
                    three_digits(2 * law.b_crit), at_least));
  if (law.end == ScalingLaw::End::flat)
    out.push_back("extrapolated: steps do not fall as the size grows, smaller ones are needed to find B_crit" +
                  at_most);
  else if (!sides.below)
    out.push_back(
        fmt::format("extrapolated: no size of {} (B_crit/4) or less reached the target, so the curve is not "
                    "seen to fall like 1/B{}",
                    three_digits(law.b_crit / 4), at_most));
  std::string poor;
  for (const std::string& reason : why_poor) poor += (poor.empty() ? "poorly determined: " : "; ") + reason;
  if (!poor.empty()) out.push_back(poor);
  if (!law.converged) out.push_back("the search for the maximum stopped before it had settled");
  return out;
}

ScalingFit fit_runs(const ScalingRuns& data, uint64_t seed, const std::string& file, int draws) {
  const std::vector<SizeSample> sizes = group_by_size(data.runs);
  const auto reached =
      std::count_if(sizes.begin(), sizes.end(), [](const SizeSample& size) { return size.reached > 0; });
  if (!can_fit(sizes))
    throw UsageError(text("{}: {} batch sizes, and at {} of them a run reached its target; a law needs 3 such sizes",
                          file, sizes.size(), reached));
  ScalingFit fit;
  fit.data = data, fit.seed = seed;
  fit.law = fit_scaling_law(sizes);
  fit.rows = size_rows(data, fit.law);
  fit.bootstrap = bootstrap_law(data.runs, fit.law, seed, draws);
  fit.left_out = leave_one_out(data.runs, fit.law);
  fit.sides = bracket(data.runs, fit.law);
  fit.lack_of_fit = rms_residual(fit.rows);
  fit.why_poor = reasons(fit);
  if (data.has_seconds) fit.time = fit_time(data.runs, fit.law);
  return fit;
}

}  // namespace tapedeck
