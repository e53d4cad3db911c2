#include "apps/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "apps/feed.h"
#include "apps/models/mlp.h"
#include "apps/noise_meter.h"
#include "apps/savers.h"
#include "engine/backend.h"
#include "engine/gemm_devices.h"
#include "engine/gpu.h"
#include "engine/step_graph.h"
#include "engine/tape_watch.h"
#include "engine/trace.h"

namespace tapedeck {

Device prepare_machine(const Config& config) {
  set_threads(static_cast<int>(config.threads));
  const Device gpu_or_cpu = config.device == "auto" && why_no_cuda().empty() ? Device::cuda : Device::cpu;
  const Device device = config.device == "auto" ? gpu_or_cpu : find_device(config.device);
  if (config.tf32 && device != Device::cuda)
    throw UsageError(text("--tf32: {} multiplies in fp32 alone: leave it out, or use --device cuda", name(device)));
  set_tf32(config.tf32);
  if (device == Device::cuda) limit_gpu_memory(static_cast<size_t>(config.memory_limit.value_or(0)));
  Arena& arena = backend(device).arena();
  arena.limit(config.memory_limit ? static_cast<size_t>(*config.memory_limit) : arena.capacity());
  return device;
}

void say_what_is_slow(const Config& config) {
  if (config.quiet) return;
  const std::string why = why_no_cuda();
  if (config.device == "auto" && built_with_cuda() && !why.empty())
    std::cerr << fmt::format("computing on the CPU: {}\n", why);
  const bool on_cpu = config.device == "cpu" || (config.device == "auto" && !why.empty());
  if (!on_cpu) return;
  if (config.precision == "fp16")
    std::cerr << "fp16 on a CPU: products are made in fp32 of converted copies, so it is for study, not for speed\n";
  if (config.precision == "bf16" && !bf16_products_are_fast())
    std::cerr << "bf16 here: the processor or the build has no products of bf16, so they are made in fp32 of converted "
                 "copies, and no faster\n";
}

Config with_device_named(const Config& config, Device device) {
  Config named = config;
  if (config.device == "auto") named.device = name(device);
  return named;
}

DType find_precision(const Config& config) {
  if (config.precision == "fp64") return DType::f64;
  if (config.precision == "fp16") return DType::f16;
  return config.precision == "bf16" ? DType::bf16 : DType::f32;
}

const char* precision_name(DType dtype) {
  switch (dtype) {
    case DType::f64: return "fp64";
    case DType::f16: return "fp16";
    case DType::bf16: return "bf16";
    default: return "fp32";
  }
}

bool graph_wanted(const Config& config, Device device) {
  return config.graph == "on" || (config.graph == "auto" && device == Device::cuda);
}

GptShape gpt_shape(const Config& config, int64_t context, int64_t vocabulary) {
  return {.vocabulary = vocabulary,
          .context = context,
          .layers = config.layers,
          .heads = config.heads,
          .width = config.width,
          .tied = !config.untied,
          .dropout = config.dropout,
          .composed = config.attention == "composed"};
}

void set_recompute(Network& model, const Recompute& recompute) {
  CHECK(recompute.kind != Recompute::Kind::budget || std::ssize(recompute.plan) == model.pieces(),
        "recompute: a budget without a plan for each of {} pieces would recompute nothing; plan it first",
        model.pieces());
  if (recompute.kind == Recompute::Kind::blocks) model.recompute_every = 1;
  for (size_t piece = 0; piece < recompute.plan.size(); ++piece)
    model.save(static_cast<int64_t>(piece), recompute.plan[piece]);
  if (recompute.kind != Recompute::Kind::every) return;
  if (recompute.amount > model.parts())
    throw UsageError(text("--recompute every={}: the {} has only {} {}: use every={} or less", recompute.amount,
                          model.name(), model.parts(), model.part_name(), model.parts()));
  model.recompute_every = recompute.amount;
}

std::unique_ptr<Network> make_model(const Config& config, const Problem& problem) {
  std::unique_ptr<Network> model;
  if (config.model == "gpt")
    model = std::make_unique<Gpt>(gpt_shape(config, problem.data().features, problem.outputs()));
  else
    model = std::make_unique<Mlp>(problem.data().features, config.hidden, problem.outputs(),
                                  find_activation(config.activation), config.dropout);
  set_recompute(*model, config.recompute);
  return model;
}

OptimizerRule optimizer_rule(const Config& config) {
  OptimizerRule rule;
  rule.kind = find_optimizer(config.optimizer);
  rule.momentum = config.momentum.value_or(0);
  rule.weight_decay = config.weight_decay;
  rule.clip = config.clip.value_or(0);
  return rule;
}

int64_t epoch_examples(const Config& config, const Problem& problem) {
  const int64_t rows = std::ssize(problem.data().train);
  if (!config.drop_last) return rows;
  const int64_t step = config.batch * config.accumulate;
  if (step > rows)
    throw UsageError(
        text("--drop-last: a step takes {} examples and {} has only {}: use a smaller --batch or --accumulate", step,
             problem.data().name, rows));
  return rows - rows % step;
}

int64_t steps_per_epoch(const Config& config, const Problem& problem) {
  const int64_t rows = std::ssize(problem.data().train);
  if (config.batch > rows)
    throw UsageError(text("--batch {}: {} has only {} training examples: use --batch {} or less", config.batch,
                          problem.data().name, rows, rows));
  const int64_t batches = (epoch_examples(config, problem) + config.batch - 1) / config.batch;
  return (batches + config.accumulate - 1) / config.accumulate;
}

int64_t total_steps(const Config& config, const Problem& problem) {
  const int64_t epoch = steps_per_epoch(config, problem);
  int64_t total = config.steps.value_or(INT64_MAX);
  if (config.epochs && *config.epochs < INT64_MAX / epoch) total = std::min(total, *config.epochs * epoch);
  return total;
}

Schedule make_schedule(const Config& config, const Problem& problem) {
  Schedule schedule;
  schedule.base = config.lr;
  schedule.warmup = config.warmup;
  schedule.total = total_steps(config, problem);
  if (config.schedule == "linear") schedule.kind = Schedule::Kind::linear;
  if (config.schedule == "cosine") schedule.kind = Schedule::Kind::cosine;
  return schedule;
}

Learner::Learner(const Config& config, const Problem& problem, uint64_t seed, Device device, DType dtype)
    : model(make_model(config, problem)),
      parameters(*model, device, dtype, seed),
      state(device, {.scaler = first_state(scaler_rule(config))}),
      optimizer(parameters, optimizer_rule(config), state),
      example_squares(find_noise_way(config) == NoiseWay::examples) {
  if (find_noise_way(config) == NoiseWay::batches) batch_squares.emplace(parameters);
}

Model Learner::scoring() const {
  return [this](const Tensor& x) { return (*model)(x, {}); };
}

size_t saved_activations(const Tape& tape, const Inputs& inputs) {
  size_t saved = tape.saved_bytes();
  for (const Tensor& given : {inputs.x, inputs.answer})
    if (given.data.held()) saved -= given.bytes();
  return saved;
}

size_t learn(Learner& learner, const Problem& problem, const Inputs& inputs, const Pass& pass, double share) {
  Tape tape;
  try {
    const Tensor loss = [&] {
      const Range range("forward");
      return problem.loss((*learner.model)(inputs.x, pass), inputs);
    }();
    const size_t saved = saved_activations(tape, inputs);
    const Range range("backward");
    std::optional<ExampleSquares> squares;
    if (learner.example_squares) squares.emplace(inputs.x.device(), inputs.x.rows());
    tape.backward(loss, seed_of(learner.state.ptr(), loss, share));
    if (squares) squares->add_to(learner.state.ptr(), learner.parameters.count());
    end_batch(learner.state.ptr(), loss, share, inputs.x.rows());
    return saved;
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(error.what() + largest_savers(tape));
  }
}

std::string first_broken(Learner& learner, const Problem& problem, const Inputs& inputs, uint64_t seed) {
  const StepState before = learner.state.read();
  const FiniteWatch watch;
  learner.parameters.forget_gradients();
  learn(learner, problem, inputs, {true, seed, 0, &learner.state.ptr()->batches}, 1);
  learner.state.write(before);
  return watch.first();
}

void warm_up(const Config& config, const Problem& problem, Device device, DType dtype) {
  Learner learner(config, problem, 0, device, dtype);
  const Inputs inputs = problem.throw_away(config.batch);
  for (uint64_t step = 0; step < 3; ++step) {
    learner.parameters.forget_gradients();
    learn(learner, problem, inputs, {true, 0, step}, 1);
    learner.optimizer.step(0);
  }
}

MemoryForecast forecast_memory(const Config& config, const Problem& problem, Device device, DType dtype) {
  Learner learner(config, problem, 0, device, dtype);
  Arena& arena = backend(device).arena();
  const bool graph = graph_wanted(config, device);
  std::optional<StepGraph> steps;
  // Attention takes the square of a sequence's length in time, but memory grows with the number of tokens: long
  // sequences are measured by few short ones.
  const Dataset& data = problem.data();
  const int64_t features = problem.sequences() ? std::min<int64_t>(data.features, 1024) : data.features;
  const double lengths = static_cast<double>(data.features) / static_cast<double>(features);
  struct Bytes {
    double peak, between;  // in a step, and between two, where a captured one keeps its memory
    double saved;
  };
  const auto bytes_at = [&](int64_t batch) {
    steps.emplace(device, graph);
    arena.reset_peak();
    size_t saved = 0;
    for (int i = 0; i < 2; ++i)  // plainly, then captured
      steps->run({}, [&] {
        learner.parameters.forget_gradients();
        saved = learn(learner, problem, problem.throw_away(batch, features), {true, 0, 0}, 1);
        learner.optimizer.advance({.schedule = {.base = config.lr}});
      });
    const Arena::Use use = arena.use();
    return Bytes{static_cast<double>(use.peak_bytes), static_cast<double>(use.bytes), static_cast<double>(saved)};
  };
  const int64_t few = problem.sequences() ? std::clamp<int64_t>(1024 / features, 1, 16) : 16;
  const int64_t small = std::min<int64_t>(config.batch, few);
  const Bytes one = bytes_at(small), two = bytes_at(2 * small);
  const auto at_batch = [&](double at_small, double at_twice) {
    const double each = (at_twice - at_small) / static_cast<double>(small);
    return at_small + each * (static_cast<double>(config.batch) * lengths - static_cast<double>(small));
  };

  const double before = static_cast<double>(arena.use().bytes);
  arena.reset_peak();
  const std::span<const int32_t> scored = data.validation.size() > data.test.size() ? data.validation : data.test;
  const auto pass = std::min<int64_t>(std::ssize(scored), problem.examples_a_pass());  // the peak is that of any pass
  if (problem.sequences()) {
    const NoTape off;
    const Inputs inputs = problem.throw_away(pass, features);
    problem.loss(learner.scoring()(inputs.x), inputs);
  } else {
    problem.score(learner.scoring(), scored.first(static_cast<size_t>(pass)));
  }
  const double scoring = (static_cast<double>(arena.use().peak_bytes) - before) * lengths;

  // A step in f32 reads its batch in place, where the feed has put it; here it lay beside, and a graph kept it.
  const double one_batch =
      static_cast<double>(config.batch) * static_cast<double>(data.features + problem.answers()) * 4;
  const double in_place = dtype == DType::f32 && !DeviceData::fits(problem) ? one_batch : 0;
  const double step = at_batch(one.peak, two.peak) - in_place;
  const double between = at_batch(one.between, two.between) - (graph ? in_place : 0);
  const size_t fed =
      feed_bytes(problem, config.batch, config.workers.value_or(default_workers(problem)), config.prefetch);
  const ParameterSet& parameters = learner.parameters;
  return {static_cast<size_t>(std::max(step, between + scoring)) + fed,
          parameters.value_bytes(),
          parameters.gradients().bytes(),
          learner.optimizer.state_bytes(),
          fed,
          static_cast<size_t>(at_batch(one.saved, two.saved))};
}

}  // namespace tapedeck
