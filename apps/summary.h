// summary.json: what a run came to. Fields that do not apply stay unset and are written as null.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "apps/config.h"
#include "apps/meter.h"

namespace tapedeck {

using Number = std::optional<double>;
using Count = std::optional<int64_t>;

struct NoiseSummary {              // see noise_scale.h
  Number value, low, high;         // B_simple and its 95 % interval; none: not resolved
  Number square, trace;            // |G|², tr Σ
  Count samples, left_out;         // steps
  std::string state;               // "resolved", "not resolved", "not available: REASON"
  std::optional<std::string> how;  // "per example", "micro-batches of 12"
};

struct Summary {
  std::string command, model, data, device, precision;
  Count parameters, threads, seed, batch, accumulate, steps, examples;
  Number epochs;

  struct {
    Number train_loss, validation_loss, validation_accuracy, test_loss, test_accuracy;
  } final;

  struct {
    std::optional<std::string> metric;
    Number value;
    std::optional<bool> reached;
    Count step, examples;
    Number seconds, seconds_with_eval;
  } target;

  struct {
    // Seconds. data_load: what loading took, whoever did it; data_wait: what the training loop waited for it.
    Number data, init, warmup, train, eval, checkpoint, data_wait, data_load, total;
  } time;

  std::optional<StepTimeSummary> step_ms;
  struct {
    Number examples_per_s, tokens_per_s;
  } throughput;
  Number data_wait_ratio, flops_per_example, gflops, peak_gflops;

  struct {
    // Bytes. activations_peak is what forward saves for backward, and the workspace beside it.
    Count peak_bytes, parameters, gradients, optimizer, activations_peak, saved_activations, workspace;
  } memory;

  struct {
    Number final;
    Count skipped, growths, backoffs;
  } loss_scale;

  std::optional<NoiseSummary> noise_scale;  // null: not asked for

  std::optional<std::string> reason;  // why it ended as it did, where that is worth a sentence
  std::string status;                 // "done", "target reached", "target not reached", "diverged", "interrupted"
};

// Fills what the configuration, the clock and the tracker know (target from `tracker` when there is one).
void fill(Summary& summary, const Config& config);
void fill(Summary& summary, const TrainingClock& clock);
void fill(Summary& summary, const TargetTracker& tracker);

Json to_json(const Summary& summary);

// What to_json wrote. A missing field counts as null; throws Error naming a field whose value is of another type.
Summary summary_from_json(const Json& document);

}  // namespace tapedeck
