#include "apps/profile_overhead.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "apps/meter.h"
#include "engine/backend.h"
#include "engine/trace.h"

namespace tapedeck {
namespace {

struct Stopped {};

class Steps {
 public:
  Steps(const Config& config, const Problem& problem, Device device, DType dtype, const std::function<bool()>& stop)
      : stop_(stop),
        problem_(problem),
        device_(device),
        learner_(config, problem, 0, device, dtype),
        inputs_(problem.throw_away(config.batch)),
        tracer_(device) {}

  double seconds(bool profiled) {
    if (stop_()) throw Stopped();
    backend(device_).sync();
    const double begin = steady_seconds();
    if (profiled) {
      const Tracer::On on(tracer_);
      const Range range("step");
      step();
    } else {
      step();
    }
    backend(device_).sync();
    const double end = steady_seconds();
    tracer_.clear();
    return end - begin;
  }
  double fastest(bool profiled, int64_t steps) {
    double least = seconds(profiled);
    for (int64_t i = 1; i < steps; ++i) least = std::min(least, seconds(profiled));
    return least;
  }

 private:
  void step() {
    learner_.parameters.forget_gradients();
    learn(learner_, problem_, inputs_, {true, 0, next_++}, 1);
    const Range range("optimizer");
    learner_.optimizer.advance({});
  }

  const std::function<bool()>& stop_;
  const Problem& problem_;
  const Device device_;
  Learner learner_;
  const Inputs inputs_;
  Tracer tracer_;
  uint64_t next_ = 0;
};

ProfileOverhead measure(Steps& steps) {
  for (int i = 0; i < 3; ++i) steps.seconds(i == 1);  // caches and memory
  const double one = steps.fastest(false, 3), budget = 2;
  const int64_t a_round = std::clamp<int64_t>(static_cast<int64_t>(budget / (one * 90)), 1, 9);
  const int64_t rounds =
      std::clamp<int64_t>(static_cast<int64_t>(budget / (3 * one * static_cast<double>(a_round))), 6, 60);
  std::array<std::vector<double>, 3> times;  // plain, profiled, plain
  for (int64_t round = 0; round < rounds; ++round)
    for (int64_t i = 0; i < 3; ++i) {  // each kind is first, second and third equally often
      const auto kind = static_cast<size_t>((round + i) % 3);
      times[kind].push_back(steps.fastest(kind == 1, a_round));
    }
  std::vector<double> plain;
  for (size_t i = 0; i < times[0].size(); ++i) plain.push_back((times[0][i] + times[2][i]) / 2);
  return {paired_ratio(times[1], plain), paired_ratio(times[2], times[0]), static_cast<int>(a_round)};
}

}  // namespace

std::optional<ProfileOverhead> measure_overhead(const Config& config, const Problem& problem, Device device,
                                                DType dtype, const std::function<bool()>& stop) try {
  Steps steps(config, problem, device, dtype, stop);
  return measure(steps);
} catch (const Stopped&) {
  return {};
}

std::string overhead_text(const ProfileOverhead& o) {
  if (!o.on || !o.control) return "";
  return fmt::format(
      "profiling a step takes {:.3f} [{:.3f}, {:.3f}] times as long as the plain step, in turns, the fastest of {} "
      "step{} a round, n = {} rounds{}; plain against plain {:.3f} [{:.3f}, {:.3f}]\n",
      o.on->ratio, o.on->low, o.on->high, o.steps_a_round, o.steps_a_round == 1 ? "" : "s", o.on->n,
      !o.control->covers_one() ? ": not to be trusted, since plain steps differ from plain ones"
      : o.on->covers_one()     ? ": no difference shown"
                               : "",
      o.control->ratio, o.control->low, o.control->high);
}

}  // namespace tapedeck
