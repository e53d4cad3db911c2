#include "apps/sweep/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/checksum.h"
#include "engine/check.h"

namespace tapedeck {

const char* name(Cell::Purpose purpose) {
  constexpr const char* names[] = {"pilot", "tune", "run", "again"};
  return names[static_cast<int>(purpose)];
}

const char* name(CellResult::Status status) {
  constexpr const char* names[] = {"reached", "missed", "diverged", "failed"};
  return names[static_cast<int>(status)];
}

std::string cell_name(const Cell& cell) {
  return fmt::format("{}-b{}-lr{}-seed{}-cap{}", name(cell.purpose), cell.batch, rate_text(cell.rate), cell.seed,
                     cell.steps);
}

std::string rate_text(double rate) { return fmt::format("{:.4g}", rate); }
double rounded_rate(double rate) { return std::stod(rate_text(rate)); }

double CellResult::best_loss() const {
  double best = std::numeric_limits<double>::infinity();
  for (const EvaluationPoint& point : curve)
    if (point.loss < best) best = point.loss;
  return best;
}

Crossing crossing(const CellResult& result, const Target& target, int64_t cap) {
  TargetTracker tracker(target);
  for (const EvaluationPoint& point : result.curve) {
    const double metric = target.metric == "accuracy" ? point.accuracy.value_or(NAN) : point.loss;
    if (tracker.observe(metric, {point.step, point.examples, point.seconds, 0})) break;
  }
  Crossing out;
  if (tracker.first_hit()) out.first_touch = tracker.first_hit()->step;
  if (const auto at = tracker.crossing()) {
    out.reached = true;
    out.lower = static_cast<double>(tracker.last_miss()), out.upper = static_cast<double>(at->step);
    out.examples = at->examples, out.seconds = at->seconds;
    return out;
  }
  // What diverged would not have come there within its cap either.
  const bool ended_early = result.status == CellResult::Status::diverged;
  const bool unconfirmed = tracker.state().candidate.has_value();  // it may have crossed behind its last miss
  out.lower = static_cast<double>(ended_early   ? std::max(cap, result.steps)
                                  : unconfirmed ? tracker.last_miss()
                                                : result.steps);
  out.upper = std::numeric_limits<double>::infinity();
  out.examples = result.examples, out.seconds = result.train_seconds;
  return out;
}

std::string Targets::text() const {
  std::string out;
  for (const double value : values) out += (out.empty() ? "" : ",") + to_text(Target{metric, value});
  return out;
}

std::string Targets::hash() const { return hash_text(text()); }

Targets given_targets(const std::vector<Target>& targets) {
  Targets out{targets.at(0).metric, {}, "given", ""};
  for (const Target& target : targets) {
    if (target.metric != out.metric)
      throw UsageError(fmt::format("--targets {}, {}: of two metrics; one sweep judges by one: leave one out",
                                   to_text(targets[0]), to_text(target)));
    out.values.push_back(target.value);
  }
  std::sort(out.values.begin(), out.values.end());
  if (out.metric == "loss") std::reverse(out.values.begin(), out.values.end());
  if (const auto twice = std::adjacent_find(out.values.begin(), out.values.end()); twice != out.values.end())
    throw UsageError(fmt::format("--targets: {}={} is given twice; give it once", out.metric, *twice));
  return out;
}

std::string hash_text(std::string_view text) { return fmt::format("{:016x}", fnv1a(text.data(), text.size())); }

}  // namespace tapedeck
