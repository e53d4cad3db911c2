#include <fmt/format.h>

#include <cmath>

#include "apps/scaling_report.h"
#include "apps/sweep/sweep_report.h"

namespace tapedeck {
namespace {

std::string steps_text(const std::optional<MedianFigure>& figure) {
  if (!figure) return "n/a";
  if (std::isinf(figure->median)) return "not reached";
  return three_digits(figure->median);
}

std::string interval_text(const std::optional<MedianFigure>& figure) {
  if (!figure || !figure->interval) return "none for n <= 5";
  const auto end = [](double x) { return std::isinf(x) ? std::string("not reached") : three_digits(x); };
  return fmt::format("[{}, {}]", end(figure->interval->low), end(figure->interval->high));
}

std::string seconds_of(const std::optional<MedianFigure>& figure, bool timed) {
  if (!timed || !figure) return "n/a";
  return std::isinf(figure->median) ? "not reached" : seconds_text(figure->median);
}

std::string rule_text(const std::optional<RuleCost>& rule) {
  if (!rule || !rule->efficiency) return "n/a";
  return fmt::format("{}{:.0f} %", rule->at_most ? "<= " : "", 100 * *rule->efficiency);
}

// With horizons what is known of the steps is no median's interval.
std::string steps_interval(const SweepSize& size) {
  return size.horizon ? size.horizon->tightest().interval() : interval_text(size.steps);
}

std::string size_line(const SweepSize& size, bool timed) {
  const std::string rate =
      size.tuned.rate ? rate_text(*size.tuned.rate) + (size.tuned.edge.empty() ? "" : "*") : "none";
  return fmt::format("{:>7} {:>10} {:>6} {:>12} {:>20} {:>10} {:>10} {:>10} {:>8} {:>8}\n", size.batch, rate,
                     fmt::format("{}/{}", size.reached, size.n), steps_text(size.steps), steps_interval(size),
                     steps_text(size.examples), seconds_of(size.seconds, timed),
                     timed && size.running_time ? seconds_text(*size.running_time) : "n/a", rule_text(size.linear),
                     rule_text(size.square_root));
}

constexpr const char* passages_legend =
    "  k/n: of n runs, k reached the target; examples, seconds: medians, seconds on the training clock without\n"
    "  evaluations; ERT: seconds of all runs over k; linear, root: what is left of the efficiency where the rate\n"
    "  follows B or its square root from the reference size (--batch) instead of being tuned: a ratio of medians of a\n"
    "  few trials, without an interval\n";
constexpr const char* horizons_legend =
    "  k/n: all n runs of a K pass together, or none; interval: more steps than the K that failed, at most those of\n"
    "  the K that passed; seconds: their median on the training clock without evaluations; ERT: all seconds over k;\n"
    "  the law is one of the middles of these intervals, and what it is off by is off them\n";

std::string table(const SweepResult& result, bool timed) {
  const bool horizons = !result.sizes.empty() && result.sizes[0].horizon;
  std::string out =
      fmt::format("{:>7} {:>10} {:>6} {:>12} {:>20} {:>10} {:>10} {:>10} {:>8} {:>8}\n", "batch", "rate", "k/n",
                  horizons ? "fewest steps" : "median steps", horizons ? "interval" : "95 % interval", "examples",
                  "seconds", "ERT", "linear", "root");
  bool edge = false;
  for (const SweepSize& size : result.sizes) {
    out += size_line(size, timed);
    edge |= !size.tuned.edge.empty();
    if (!size.tuned.why_none.empty()) out += fmt::format("{:>7} {}\n", "", size.tuned.why_none);
  }
  out += horizons ? horizons_legend : passages_legend;
  if (edge) out += "  *: the best rate lies at the edge of what was tried\n";
  return out;
}

std::string searched_twice(const RunsAgain& again) {
  const std::string what = fmt::format(
      "the same size twice (batch {}, its search with n = {} other seeds of each K): ", again.batch, again.n);
  if (!again.first->ended() || !again.second->ended()) return what + "n/a, a search is not at its end\n";
  const auto difference = again.difference();
  if (!difference) return what + "n/a, no K that was tried passes\n";
  const std::string both = fmt::format("{} and {} steps", again.first->interval(), again.second->interval());
  const std::string why = "one K each gives no interval of their ratio";
  if (difference->agree()) return fmt::format("{}{}, which agree, as they should; {}\n", what, both, why);
  const int places = std::abs(difference->places);
  return fmt::format(
      "{}{}: A DIFFERENCE of {}{} place{} of √2; {}, so that how often chance does that is not known; to pass, a mean "
      "over {} is to be {:.1f} of their deviations better than the target: more --seeds ask for less\n",
      what, both, difference->at_least ? "at least " : "", places, places == 1 ? "" : "s", why, again.n,
      margin_to_pass(again.n));
}

std::string again_text(const RunsAgain& again) {
  if (again.batch == 0) return "";
  if (again.first && again.second) return searched_twice(again);
  if (!again.steps)
    return fmt::format(
        "the same size twice (batch {}): n/a, {} of {} and {} of {} runs reached the target; wants all, and 2 of "
        "each\n",
        again.batch, again.reached, again.n, again.reached_again, again.n_again);
  std::string out =
      fmt::format("the same size twice (batch {}, n = {} and {} other seeds): steps {:.3f} [{:.3f}, {:.3f}]{}",
                  again.batch, again.n, again.n_again, again.steps->ratio, again.steps->low, again.steps->high,
                  again.steps->covers_one() ? ", as it should be, no difference"
                                            : ": A DIFFERENCE, which one sweep in 20 has by chance");
  if (again.seconds)
    out +=
        fmt::format("; seconds {:.3f} [{:.3f}, {:.3f}]", again.seconds->ratio, again.seconds->low, again.seconds->high);
  return out + "\n";
}

// The steps of each size to a looser target.
std::string intervals_line(const std::vector<SweepSize>& sizes, size_t target) {
  std::string out;
  for (const SweepSize& size : sizes)
    if (size.horizon && size.horizon->targets[target].ended())
      out += fmt::format("{}{} at {}", out.empty() ? "  steps: " : ", ", size.horizon->targets[target].interval(),
                         size.batch);
  return out.empty() ? "" : out + "\n";
}

std::string noise_text(const SweepResult& result) {
  std::string out;
  for (const SweepSize& size : result.sizes)
    if (size.noise)
      out += fmt::format("{}{} at {} (n = {})", out.empty() ? "" : ", ", three_digits(size.noise->median), size.batch,
                         size.noise_runs);
  if (out.empty()) return "gradient noise scale: resolved in no run\n";
  return "gradient noise scale B_simple, which is not B_crit, median over runs: " + out + "\n";
}

std::string listed(const SweepState& state) {
  std::string out;
  for (const auto& [name, entry] : state.results)
    if (const auto& [cell, result] = entry; result.status == CellResult::Status::failed)
      out += fmt::format("failed: {}: {}\n", name, result.reason);
  return out;
}

}  // namespace

std::string sweep_sentence(const SweepState& state, const SweepResult& result, const SweepContext& context) {
  const TargetFit* tightest = result.tightest();
  if (!tightest) return "This sweep has no result yet.";
  const std::string target = to_text(Target{state.targets->metric, tightest->target});
  const std::string rate = state.settings.tunes() ? "rate tuned at each size"
                                                  : fmt::format("rate {} at every size", state.settings.rates[0]);
  const std::string what =
      fmt::format("{} on {} ({}, {}) to validation {}", context.model, context.data, context.optimizer, rate, target);
  if (!tightest->fit)
    return fmt::format("Training {}: the scaling law could not be fitted ({}).", what, tightest->why_none);
  const ScalingFit& fit = *tightest->fit;
  const Bounds& b = fit.bootstrap.b_crit;
  const std::string of = state.settings.horizon ? fmt::format("{} seeds of each horizon", state.settings.seeds)
                                                : fmt::format("{} runs", fit.data.runs.size());
  return fmt::format(
      "Training {}: the critical batch size is {} examples (95 % interval {} to {}, {} at {} sizes, {} reached; {}).",
      what, three_digits(fit.law.b_crit), three_digits(b.low), three_digits(b.high), of, fit.rows.size(), fit.reached(),
      fit.verdict());
}

std::string sweep_text(const SweepState& state, const SweepResult& result, const SweepContext& context) {
  if (result.sizes.empty()) return "no size has been measured yet\n";
  const Targets& targets = *state.targets;
  std::string out =
      fmt::format("target: validation {} ({}, fixed before the runs, hash {}); {}\n", to_text(targets.tightest()),
                  targets.source, targets.hash(),
                  state.settings.horizon
                      ? "fixed horizon: the fewest steps, on a grid of √2, whose mean over seeds passes at p < 0.01"
                      : "first passage, confirmed by the next evaluation");
  out += table(result, context.timed) + listed(state);
  const TargetFit& tightest = *result.tightest();
  out += tightest.fit ? fit_text(*tightest.fit) : fmt::format("no law: {}\n", tightest.why_none);
  for (size_t i = 0; i + 1 < result.fits.size(); ++i) {
    const TargetFit& fit = result.fits[i];
    out +=
        fit.fit
            ? fmt::format("at the looser {}: B_crit {} [{}, {}], Smin {}, Emin {}: {}\n",
                          to_text(Target{targets.metric, fit.target}), three_digits(fit.fit->law.b_crit),
                          three_digits(fit.fit->bootstrap.b_crit.low), three_digits(fit.fit->bootstrap.b_crit.high),
                          three_digits(fit.fit->law.smin), three_digits(fit.fit->law.emin()), fit.fit->verdict())
            : fmt::format("at the looser {}: no law: {}\n", to_text(Target{targets.metric, fit.target}), fit.why_none);
    out += intervals_line(result.sizes, i);
  }
  out += noise_text(result) + again_text(result.again);
  if (!context.timed) out += fmt::format("seconds are not compared: {}\n", context.why_not_timed);
  return out + sweep_sentence(state, result, context) + "\n";
}

}  // namespace tapedeck
