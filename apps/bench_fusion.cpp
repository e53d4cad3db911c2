// tapedeck bench fusion: ops computed in one pass over memory, against the same in several: time, and the bytes that
// must move (each input read once, each output written once, as profile counts them). Both forms take turns, a round
// each, and give the same numbers. What lies in the caches gains little: memory is what a pass costs.
#include <fmt/format.h>

#include <array>
#include <memory>

#include "apps/bench_report.h"
#include "apps/bench_turns.h"
#include "apps/commands.h"
#include "apps/device_time.h"
#include "apps/experiment.h"
#include "apps/made_up.h"
#include "apps/stats.h"
#include "engine/backend.h"
#include "engine/trace.h"
#include "ops/chain.h"
#include "ops/ops.h"

namespace tapedeck {
namespace {

constexpr int64_t width = 256;
constexpr int64_t warmup_passes = 1;  // before each round

struct Inputs {
  Tensor x, branch, weight, bias, gain, weight_across = {};
};

struct Chain {
  const char* name;
  Tensor (*fused)(const Inputs&);
  Tensor (*apart)(const Inputs&);
};
constexpr Chain chains[] = {
    {"scale, relu, scale", [](const Inputs& in) { return cheap_chain_in_one(in.x); },
     [](const Inputs& in) { return cheap_chain_in_three(in.x); }},
    {"scale, silu, tanh", [](const Inputs& in) { return costly_chain_in_one(in.x); },
     [](const Inputs& in) { return costly_chain_in_three(in.x); }},
    {"add, layer norm", [](const Inputs& in) { return add_layer_norm(in.x, in.branch, in.gain, in.bias).normed; },
     [](const Inputs& in) { return layer_norm(add(in.x, in.branch), in.gain, in.bias); }},
    {"product, bias, gelu", [](const Inputs& in) { return linear(in.x, in.weight, in.bias, Activation::gelu); },
     [](const Inputs& in) { return gelu(bias(matmul(in.x, in.weight_across), in.bias)); }}};

struct ChainPass {
  const Chain& chain;
  bool backward;
  std::array<std::vector<double>, 2> us = {};      // of each pass: fused, apart
  std::array<std::vector<double>, 2> rounds = {};  // medians
  std::array<double, 2> bytes = {};
  double error = 0;
};

class FusionBench {
 public:
  FusionBench(int64_t rows, Device device, DType dtype) : rows(rows), device_(device), dtype_(dtype) {
    in_ = {.x = made_up("bench.x", {rows, width}, device, dtype),
           .branch = made_up("bench.branch", {rows, width}, device, dtype),
           .weight = made_up("bench.weight", {width, width}, device, dtype),
           .bias = made_up("bench.bias", {width}, device, dtype),
           .gain = made_up("bench.gain", {width}, device, dtype)};
    in_.weight_across = permute(in_.weight, {1, 0});
    in_.x.require_gradient();
    for (const Chain& chain : chains)
      for (const bool backward : {false, true}) passes.push_back({chain, backward});
    for (ChainPass& pass : passes) check(pass);
  }

  void round(ChainPass& pass, int64_t times) const {
    for (const size_t form : {size_t{0}, size_t{1}}) {
      const std::vector<WorkTime> took = time_work(device_, times + warmup_passes, [&] { run(pass, form); });
      const size_t before = pass.us[form].size();
      for (const WorkTime& time : std::span(took).subspan(warmup_passes)) pass.us[form].push_back(time.device * 1e6);
      pass.rounds[form].push_back(median(std::span(pass.us[form]).subspan(before)));
    }
  }

  const int64_t rows;
  std::vector<ChainPass> passes;

 private:
  Tensor run(const ChainPass& pass, size_t form) const {
    const auto op = form == 0 ? pass.chain.fused : pass.chain.apart;
    if (!pass.backward) {
      const NoTape inference;
      return op(in_);
    }
    *in_.x.grad = {};
    Tape tape;
    const Tensor y = op(in_);
    tape.backward(sum(y));
    return y;
  }

  // The forms agree, in what they compute and in the gradient of x; and what each moves.
  void check(ChainPass& pass) {
    std::array<std::vector<double>, 2> y, dx;
    for (const size_t form : {size_t{0}, size_t{1}}) {
      Tracer tracer(device_);
      {
        const Tracer::On on(tracer);
        const Range step("step");
        y[form] = run(pass, form).doubles();
      }
      if (pass.backward) dx[form] = in_.x.gradient().doubles();
      tracer.finish();
      for (const Span& span : tracer.spans()) pass.bytes[form] += span.bytes;
    }
    pass.error = relative_error(y[0], y[1]);
    if (pass.backward) pass.error = std::max(pass.error, relative_error(dx[0], dx[1]));
    CHECK(pass.error <= 32 * eps(dtype_), "bench fusion: \"{}\" in one pass is off that in several by {:.1e}",
          pass.chain.name, pass.error);
  }

  const Device device_;
  const DType dtype_;
  Inputs in_;
};

Json row_json(const FusionBench& bench, const ChainPass& pass) {
  Json row = bench_row(
      "fusion",
      {{"chain", pass.chain.name}, {"rows", bench.rows}, {"pass", pass.backward ? "forward and backward" : "forward"}});
  const char* names[] = {"fused", "apart"};
  for (const size_t form : {size_t{0}, size_t{1}}) {
    Json& out = row[names[form]];
    add_times(out, "median_us", pass.us[form], pass.rounds[form]);
    out["bytes"] = pass.bytes[form];
    out["gb_per_s"] = pass.bytes[form] / out["median_us"].get<double>() / 1e3;
  }
  row["bytes_ratio"] = pass.bytes[0] / pass.bytes[1];
  row["error"] = pass.error;
  add_ratio(row["fused_over_apart"], pass.rounds[0], pass.rounds[1]);
  return row;
}

std::string line(const Json& row) {
  const Json &fused = row["fused"], &apart = row["apart"];
  return fmt::format("{:>7} {:<20} {:<21} {:>10.1f} {:>10.1f} {:>5} {:>9.2f} {:>9.2f} {:>6.2f}  {:<22} {:>8.1e}{}\n",
                     row["rows"].get<int64_t>(), row["chain"].get<std::string>(), row["pass"].get<std::string>(),
                     fused["median_us"].get<double>(), apart["median_us"].get<double>(), fused["n"].get<int64_t>(),
                     fused["bytes"].get<double>() / 1e6, apart["bytes"].get<double>() / 1e6,
                     row["bytes_ratio"].get<double>(), ratio_text(row["fused_over_apart"]), row["error"].get<double>(),
                     unstable_mark(fused, apart));
}

std::string header(const Config& config, Device device) {
  std::string out =
      fmt::format("rows of {} numbers, {} on {}, {} thread{}; {} rounds, {} pass before each left out\n", width,
                  config.precision, name(device), threads(), threads() == 1 ? "" : "s", config.rounds, warmup_passes);
  const auto columns = [&](auto... words) {
    out += fmt::format("{:>7} {:<20} {:<21} {:>10} {:>10} {:>5} {:>9} {:>9} {:>6}  {:<22} {:>8}\n", words...);
  };
  columns("", "", "", "fused", "apart", "", "fused", "apart", "bytes", "time", "");
  columns("rows", "chain", "pass", "median us", "median us", "n", "MB moved", "MB moved", "ratio", "fused / apart",
          "differ");
  return out;
}

}  // namespace

int run_bench_fusion(const Config& config) {
  const Device device = prepare_machine(config);
  say_what_is_slow(config);
  Json document = bench_document(config, load_before_bench(config), device);
  document["warmup_passes"] = warmup_passes;
  document["rows"] = Json::array();
  Turns turns(config);
  turns.print(header(config, device));
  for (const int64_t rows : config.sizes) {
    const std::string size = fmt::format("{} rows", rows);
    turns.fit(size, [&] {
      FusionBench bench(rows, device, find_precision(config));
      const int64_t times =
          config.steps.value_or(device == Device::emulated ? 2 : std::clamp<int64_t>(200'000 / rows, 5, 100));
      for (int64_t round = 0; round < config.rounds; ++round)
        for (ChainPass& pass : bench.passes) {
          turns.say(round, size + ", " + pass.chain.name);
          bench.round(pass, times);
        }
      for (const ChainPass& pass : bench.passes) {
        document["rows"].push_back(row_json(bench, pass));
        turns.print(line(document["rows"].back()));
      }
    });
  }
  turns.add_dropped(document);
  print_bench(config, document, "");
  turns.check();
  return exit_done;
}

}  // namespace tapedeck
