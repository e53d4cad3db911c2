// One run of the trainer inside a test, from options as on the command line, without a folder.
#pragma once
#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "apps/trainer.h"

namespace tapedeck::test {

using Settings = std::vector<Setting>;

inline Settings with(Settings settings, const Settings& more) {  // instead of what they say otherwise
  for (const Setting& one : more) {
    std::erase_if(settings, [&](const Setting& s) { return s.option == one.option; });
    settings.push_back(one);
  }
  return settings;
}

struct Training {
  // `log` sees what a log file would. A run that is stopped scores nothing at its end.
  explicit Training(
      const std::vector<Setting>& options, std::streambuf* log = nullptr, Trainer::Stop stop = [] { return false; })
      : config(configure("train", with_device(options))),
        device(prepare_machine(config)),
        dtype(find_precision(config)),
        problem(config, device, dtype),
        stream(log ? log : ignored.rdbuf()),
        progress(stream, false, log == nullptr),
        trainer(config, problem, device, clock, progress, nullptr, std::move(stop)) {}

  static std::vector<Setting> with_device(std::vector<Setting> options) {  // the CPU where they do not say
    const bool says =
        std::any_of(options.begin(), options.end(), [](const Setting& s) { return s.option == "device"; });
    if (!says && why_no_cuda().empty()) options.push_back({"device", "cpu"});
    return options;
  }

  std::vector<double> weights() const { return trainer.learner().parameters.values().doubles(); }

  const Config config;
  const Device device;
  const DType dtype;
  const Problem problem;
  TrainingClock clock;
  std::ostringstream ignored;
  std::ostream stream;
  Progress progress;
  Trainer trainer;
};

// The weights that a run of these options ends with. Throws where a step of it changed none, as steps in 16 bits that
// overflow do: of two such runs equal weights prove nothing.
inline std::vector<double> trained_weights(const std::vector<Setting>& options) {
  Training training(options);
  const Summary end = training.trainer.run();
  const StepState state = training.trainer.learner().state.read();
  if (state.updates != end.steps || end.steps == 0)
    throw std::runtime_error("only " + std::to_string(state.updates) + " of the steps changed a weight");
  return training.weights();
}

// Largest difference, relative to the largest value.
inline double difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size() || a.empty()) return INFINITY;
  double worst = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(a[i]));
  }
  return largest > 0 && std::isfinite(worst) ? worst / largest : INFINITY;
}

}  // namespace tapedeck::test
