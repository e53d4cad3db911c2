// What is measured while training: the training clock, step times, when to evaluate, and when the target was reached.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "apps/config.h"

namespace tapedeck {

using TimeSource = std::function<double()>;  // seconds from any fixed origin, never going back
double steady_seconds();

enum class Phase { data, init, warmup, train, data_wait, eval, checkpoint, logging };
inline constexpr int kPhases = 8;
inline constexpr const char* phase_names[kPhases] = {"data",      "init", "warmup",     "train",
                                                     "data_wait", "eval", "checkpoint", "logging"};

// Adds up where the time goes. One phase runs at a time: entering one stops the one around it until it is left, so
// an evaluation inside training does not count as training:
//   auto training = clock.enter(Phase::train);
//   { auto pause = clock.enter(Phase::eval);  evaluate(); }
class TrainingClock {
 public:
  explicit TrainingClock(TimeSource now = steady_seconds);

  class Entered {  // leaves the phase when it dies
   public:
    explicit Entered(TrainingClock& clock) : clock_(clock) {}
    ~Entered() { clock_.leave(); }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

   private:
    TrainingClock& clock_;
  };
  [[nodiscard]] Entered enter(Phase phase);

  struct Reading {
    std::array<double, kPhases> sums{};
    double total = 0;
  };
  Reading reading() const;
  void go_on_from(const Reading& earlier);  // counts an earlier process's time as well: a resumed run has one clock

  double training() const;                          // seconds on the training clock; waiting for data is part of it
  double with_evaluation() const;                   // the same and the evaluations
  double seconds(Phase phase) const;                // of one phase; train is the training clock
  double total() const { return now_() - start_; }  // since construction, whatever was going on

 private:
  void leave();
  void charge() const;  // books the time since the last event on the phase that is running

  TimeSource now_;
  double start_;
  mutable double last_;
  mutable std::array<double, kPhases> sums_{};
  std::vector<Phase> running_;  // innermost last
};

struct StepTimeSummary {
  double median_ms, p05_ms, p95_ms;
  int64_t n;
};
class StepTimes {
 public:
  StepTimes() = default;
  explicit StepTimes(std::vector<double> milliseconds) : milliseconds_(std::move(milliseconds)) {}
  void add(double seconds) { milliseconds_.push_back(seconds * 1e3); }
  const std::vector<double>& milliseconds() const { return milliseconds_; }
  std::optional<StepTimeSummary> summary() const;  // none before the first step

 private:
  std::vector<double> milliseconds_;
};

// When to evaluate: every `every` steps, or, for 0, at the steps ⌈1.05^k⌉, which finds a crossing within 5 % at every
// scale (each step from 1 to 24, then 26, 27, 28, 29, 31, …).
struct EvaluationPlan {
  int64_t every = 0;
  bool due(int64_t step) const;  // steps count from 1
};

struct Moment {  // where a run stood
  int64_t step = 0, examples = 0;
  double seconds = 0;            // on the training clock
  double seconds_with_eval = 0;  // the evaluation that has just ended included
};

// Finds the crossing of a target: the first evaluation that holds it and is confirmed by the next one. The true
// crossing lies in (last_miss, crossing] steps. A metric that is not a number is a miss.
class TargetTracker {
 public:
  struct State {
    std::optional<Moment> first_hit, candidate;
    int64_t last_miss = 0;
    bool confirmed = false;
  };
  explicit TargetTracker(Target target) : target_(std::move(target)) {}
  TargetTracker(Target target, const State& state) : target_(std::move(target)), state_(state) {}

  bool observe(double metric, const Moment& at);  // call after each evaluation; true once confirmed
  bool reached() const { return state_.confirmed; }

  const Target& target() const { return target_; }
  const State& state() const { return state_; }
  const std::optional<Moment>& first_hit() const { return state_.first_hit; }  // ever, confirmed or not
  std::optional<Moment> crossing() const { return state_.confirmed ? state_.candidate : std::nullopt; }
  int64_t last_miss() const {
    return state_.last_miss;
  }  // step of the last miss before the crossing; 0: there was none

 private:
  Target target_;
  State state_;
};

}  // namespace tapedeck
