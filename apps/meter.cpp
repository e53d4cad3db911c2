#include "apps/meter.h"

#include <chrono>
#include <cmath>

#include "apps/stats.h"
#include "engine/check.h"

namespace tapedeck {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

TrainingClock::TrainingClock(TimeSource now) : now_(std::move(now)), start_(now_()), last_(start_) {}

void TrainingClock::charge() const {
  const double now = now_();
  if (!running_.empty()) sums_[static_cast<size_t>(running_.back())] += now - last_;
  last_ = now;
}

TrainingClock::Entered TrainingClock::enter(Phase phase) {
  charge();
  running_.push_back(phase);
  return Entered(*this);
}

void TrainingClock::leave() {
  charge();
  running_.pop_back();
}

TrainingClock::Reading TrainingClock::reading() const {
  charge();
  return {sums_, total()};
}

void TrainingClock::go_on_from(const Reading& earlier) {
  for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += earlier.sums[i];
  start_ -= earlier.total;
}

double TrainingClock::seconds(Phase phase) const {
  charge();
  const auto sum = [&](Phase p) { return sums_[static_cast<size_t>(p)]; };
  return phase == Phase::train ? sum(Phase::train) + sum(Phase::data_wait) : sum(phase);
}

double TrainingClock::training() const { return seconds(Phase::train); }
double TrainingClock::with_evaluation() const { return seconds(Phase::train) + seconds(Phase::eval); }

std::optional<StepTimeSummary> StepTimes::summary() const {
  if (milliseconds_.empty()) return std::nullopt;
  return StepTimeSummary{quantile(milliseconds_, 0.5), quantile(milliseconds_, 0.05), quantile(milliseconds_, 0.95),
                         static_cast<int64_t>(milliseconds_.size())};
}

bool EvaluationPlan::due(int64_t step) const {
  if (step < 1) return false;
  if (every > 0) return step % every == 0;
  // step = ⌈1.05^k⌉ means step − 1 < 1.05^k <= step. The first k past step − 1 is found by logarithm; its neighbours
  // are tried as well, in case rounding moved it.
  const double below = static_cast<double>(step - 1);
  const int guess = step == 1 ? 0 : static_cast<int>(std::log(below) / std::log(1.05));
  for (int k = std::max(0, guess - 1); k <= guess + 2; ++k)
    if (std::ceil(std::pow(1.05, k)) == static_cast<double>(step)) return true;
  return false;
}

bool TargetTracker::observe(double metric, const Moment& at) {
  if (state_.confirmed) return true;
  const bool hit = target_.metric == "accuracy" ? metric >= target_.value : metric <= target_.value;
  if (!hit) {
    state_.candidate.reset();
    state_.last_miss = at.step;
  } else if (state_.candidate) {
    state_.confirmed = true;
  } else {
    state_.candidate = at;
    if (!state_.first_hit) state_.first_hit = at;
  }
  return state_.confirmed;
}

}  // namespace tapedeck
