// A sweep's result as text, and as the document summary.json, from which its page is made.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "apps/sweep/sweep_result.h"

namespace tapedeck {

struct SweepContext {  // what the result is a result of
  std::string model, data, data_hash, device, precision, optimizer, schedule, preset;
  int64_t threads = 1, parameters = 0, train_examples = 0;
  bool complete = false, timed = true;
  std::string why_not_timed;
  std::optional<double> estimated_seconds;
};

Json sweep_json(const SweepState& state, const SweepResult& result, const SweepContext& context);
std::string sweep_text(const SweepState& state, const SweepResult& result, const SweepContext& context);

// What a person may quote: the result with its interval, n, target, tuning and machine's part in it.
std::string sweep_sentence(const SweepState& state, const SweepResult& result, const SweepContext& context);

}  // namespace tapedeck
