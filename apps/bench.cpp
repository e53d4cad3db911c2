// tapedeck bench step: the training step of an MLP 784-512-512-10 with Adam on a fixed resident batch of made-up
// examples: forward, backward, gradient norm, update. Batch sizes take turns, a round each, so that a change of the
// machine's speed touches all of them alike.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/experiment.h"
#include "apps/machine.h"
#include "apps/meter.h"
#include "apps/peaks.h"
#include "apps/record.h"
#include "apps/stats.h"

namespace tapedeck {
namespace {

constexpr int64_t features = 784, classes = 10;
constexpr int warmup_steps = 5;

class StepBench {
 public:
  StepBench(const Config& config, int64_t batch, Device device, DType dtype)
      : batch(batch),
        model_(features, config.hidden, classes, find_activation(config.activation), config.dropout),
        parameters_(model_, device, dtype, static_cast<uint64_t>(config.seed)),
        optimizer_(parameters_, optimizer_rule(config)),
        rate_(config.lr) {
    Tensor::empty({batch, features}, DType::f32, device);  // a batch too large is refused before the host fills up
    std::vector<float> x;
    std::vector<int32_t> labels;
    for (int64_t i = 0; i < batch * features; ++i)
      x.push_back(uniform01(random_bits(1, 0, site_of("bench"), static_cast<uint64_t>(i)).word[0]));
    for (int64_t i = 0; i < batch; ++i) labels.push_back(static_cast<int32_t>(i % classes));
    const Tensor plain = Tensor::from(x, {batch, features}, device);
    x_ = dtype == DType::f32 ? plain : cast(plain, dtype);
    labels_ = Tensor::from(labels, {batch}, device);
  }

  double step() {  // seconds
    const double begin = steady_seconds();
    parameters_.forget_gradients();
    {
      Tape tape;
      const Tensor loss = cross_entropy(model_(x_, {true, 1, 0, &optimizer_.state().ptr()->updates}), labels_);
      tape.backward(loss);
    }
    const double norm = optimizer_.step(rate_);
    CHECK(norm > 0, "bench step: the gradient norm is {}: this step does not train", norm);
    return steady_seconds() - begin;
  }
  double flops() const { return model_.training_flops() * static_cast<double>(batch); }

  const int64_t batch;
  std::vector<double> milliseconds;

 private:
  Mlp model_;
  ParameterSet parameters_;
  Optimizer optimizer_;
  double rate_;
  Tensor x_, labels_;
};

Json row_json(const StepBench& bench, double peak_gflops) {
  const std::vector<double>& ms = bench.milliseconds;
  const double middle = median(ms), gflops = bench.flops() / middle / 1e6;
  return {{"name", "step"},
          {"batch", bench.batch},
          {"n", ms.size()},
          {"median_ms", middle},
          {"p05", quantile(ms, 0.05)},
          {"p95", quantile(ms, 0.95)},
          {"examples_per_s", static_cast<double>(bench.batch) / middle * 1e3},
          {"gflops", gflops},
          {"share_of_peak", gflops / peak_gflops}};
}

std::string table(const Json& rows, const Peaks& peaks, const Config& config, Device device) {
  std::string hidden;
  for (const int64_t width : config.hidden) hidden += fmt::format("{}-", width);
  std::string out =
      fmt::format("mlp {}-{}{}, {}, {} on {}, {} thread{}; {} warm-up steps left out\n", features, hidden, classes,
                  config.optimizer, config.precision, name(device), threads(), threads() == 1 ? "" : "s", warmup_steps);
  out += fmt::format("{:>6} {:>10} {:>10} {:>10} {:>7} {:>12} {:>9} {:>8}\n", "batch", "median ms", "5 %", "95 %", "n",
                     "examples/s", "GFLOP/s", "of peak");
  for (const Json& row : rows)
    out += fmt::format("{:>6} {:>10.3f} {:>10.3f} {:>10.3f} {:>7} {:>12.0f} {:>9.1f} {:>7.0f}%\n",
                       row["batch"].get<int64_t>(), row["median_ms"].get<double>(), row["p05"].get<double>(),
                       row["p95"].get<double>(), row["n"].get<int64_t>(), row["examples_per_s"].get<double>(),
                       row["gflops"].get<double>(), 100 * row["share_of_peak"].get<double>());
  out += fmt::format("gemm peak of this machine: {:.1f} GFLOP/s (best of n = {}, median {:.1f}; {})\n", peaks.gemm.best,
                     peaks.gemm.n, peaks.gemm.median, peaks.gemm.how);
  return out;
}

}  // namespace

int run_bench_step(const Config& config) {
  const Device device = prepare_machine(config);
  const Load load = measure_load();
  if (load.busy) std::cerr << "this machine is busy with something else: these times will be too long\n";
  const Peaks peaks = measure_peaks();

  std::vector<std::unique_ptr<StepBench>> benches;
  for (const int64_t batch : config.batches)
    benches.push_back(std::make_unique<StepBench>(config, batch, device, find_precision(config)));
  for (int64_t round = 0; round < config.rounds; ++round)
    for (const auto& bench : benches) {
      for (int i = 0; i < warmup_steps; ++i) bench->step();  // caches hold another batch size's data now
      const int64_t steps = config.steps.value_or(std::max<int64_t>(10, 20000 / bench->batch));
      for (int64_t i = 0; i < steps; ++i) bench->milliseconds.push_back(bench->step() * 1e3);
    }

  Json rows = Json::array();
  for (const auto& bench : benches) rows.push_back(row_json(*bench, peaks.gemm.best));
  const Json document = {{"format_version", kFormatVersion},
                         {"machine", machine_json(this_machine(), load, threads(), device)},
                         {"peak_gflops", peaks.gemm.best},
                         {"warmup_steps", warmup_steps},
                         {"rows", rows}};
  if (!config.save.empty()) write_file(config.save, json_text(document));
  if (config.json)
    std::cout << json_text(document) << "\n";
  else
    std::cout << table(rows, peaks, config, device);
  return exit_done;
}

}  // namespace tapedeck
