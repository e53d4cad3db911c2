// Experiment: what a configuration stands for: the machine's settings, a problem, a model and its optimizer.
#pragma once
#include <memory>
#include <optional>

#include "apps/config.h"
#include "apps/models/gpt.h"
#include "apps/problem.h"
#include "ops/gradient_squares.h"
#include "ops/optimizer.h"
#include "ops/schedule.h"

namespace tapedeck {

// Sets threads and memory limit, and says which device the configuration means.
Device prepare_machine(const Config& config);
// Lines on stderr where --device auto took the CPU in a build with CUDA (without, nobody expects a GPU), and where 16
// bits will not be faster: once nothing is left that could be refused.
void say_what_is_slow(const Config& config);
// With the name of the device that `auto` stands for here: a run is recorded, and goes on, with what it was made with.
Config with_device_named(const Config& config, Device device);
DType find_precision(const Config& config);              // what the model computes in
const char* precision_name(DType dtype);                 // "fp32": as --precision calls it
bool graph_wanted(const Config& config, Device device);  // whether steps are captured and replayed

GptShape gpt_shape(const Config& config, int64_t context, int64_t vocabulary);
// Makes the model recompute what is asked for; a budget needs its plan (with_recompute_planned). Throws UsageError
// where the model has fewer parts than a segment is to have.
void set_recompute(Network& model, const Recompute& recompute);
std::unique_ptr<Network> make_model(const Config& config, const Problem& problem);
OptimizerRule optimizer_rule(const Config& config);

// Examples of an epoch that are trained on: all, or with --drop-last those that fill steps; the others change from epoch
// to epoch. Throws UsageError where none is left.
int64_t epoch_examples(const Config& config, const Problem& problem);

// Optimizer steps of an epoch, and of the whole run (whichever cap comes first). Throws UsageError where the batch is
// larger than the training split.
int64_t steps_per_epoch(const Config& config, const Problem& problem);
int64_t total_steps(const Config& config, const Problem& problem);
Schedule make_schedule(const Config& config, const Problem& problem);

// A model with its parameters and optimizer, as a run with this seed begins.
struct Learner {
  Learner(const Config& config, const Problem& problem, uint64_t seed, Device device, DType dtype);
  Model scoring() const;  // the model as it is evaluated: no dropout

  std::unique_ptr<Network> model;
  ParameterSet parameters;
  DeviceValue<StepState> state;
  Optimizer optimizer;  // advances the state
  // Of --noise-scale, one of the two at most:
  bool example_squares;                       // learn() gathers them
  std::optional<BatchSquares> batch_squares;  // whoever asks for a batch gathers them behind it
};

// Bytes that a recorded forward pass saves for backward, without the batch itself.
size_t saved_activations(const Tape& tape, const Inputs& inputs);

// One forward and backward pass, without waiting for it; gradients and the loss gather with this share of the step, and
// the state moves on by one batch. Returns saved_activations().
size_t learn(Learner& learner, const Problem& problem, const Inputs& inputs, const Pass& pass, double share);

// Where the first number of a batch's forward and backward pass lies that is not finite: "output of linear at
// mlp.hidden0", "output gradient of …"; empty: all are finite. Waits for the device at each op; nothing of the run
// changes.
std::string first_broken(Learner& learner, const Problem& problem, const Inputs& inputs, uint64_t seed);

// Runs three steps on made-up examples with a learner that is then thrown away, so that first-touch and code generation
// are paid before the clock runs; nothing of the real run changes.
void warm_up(const Config& config, const Problem& problem, Device device, DType dtype);

// Bytes at the peak of a run with this batch: that of a step, from small throw-away ones of two sizes (memory is affine
// in the batch), or of scoring, where that takes more. `data`: what the feed takes; `saved`: what forward saves for
// backward.
struct MemoryForecast {
  size_t peak, parameters, gradients, optimizer, data, saved;
};
MemoryForecast forecast_memory(const Config& config, const Problem& problem, Device device, DType dtype);

}  // namespace tapedeck
