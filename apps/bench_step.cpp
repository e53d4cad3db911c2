// tapedeck bench step: the training step of an MLP 784-512-512-10 with Adam on a fixed resident batch of made-up
// examples: forward, backward, gradient norm, update. Batch sizes take turns, a round each, so that a change of the
// machine's speed touches all of them alike; on a device with graphs so do plain steps and steps replayed as a graph.
// A row is printed after its last round.
// Times are the device's: the host asks for a round of steps and waits behind the last.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>

#include "apps/bench_report.h"
#include "apps/bench_turns.h"
#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/peaks.h"
#include "apps/step_bench.h"

namespace tapedeck {
namespace {

struct Entry {
  int64_t batch;
  bool graph;
  bool fits = true;  // into memory
  std::unique_ptr<StepBench> bench = nullptr;

  std::string size() const { return fmt::format("batch {}{}", batch, graph ? " as a graph" : ""); }
};

// `plain`: the same steps without a graph, which took turns with these; null: none. `peak` is null where none is known.
Json row_json(const StepBench& bench, const StepBench* plain, const Json& peak) {
  const bool graph = bench.graph().on();
  Json row = bench_row("step", {{"batch", bench.batch}, {"graph", graph}});
  row["nodes"] = graph ? Json(bench.graph().nodes()) : Json();
  add_times(row, "median_ms", bench.milliseconds(), bench.round_medians());
  const double middle = row["median_ms"], gflops = bench.flops() / middle / 1e6;
  row["examples_per_s"] = static_cast<double>(bench.batch) / middle * 1e3;
  row["gflops"] = gflops;
  row["share_of_peak"] = peak.is_null() ? Json() : Json(gflops / peak.get<double>());
  if (plain) add_ratio(row["over_plain"], bench.round_medians(), plain->round_medians());
  return row;
}

std::string line(const Json& row) {
  const Json &nodes = row["nodes"], &share = row["share_of_peak"];
  return fmt::format("{:>6} {:>10} {:>10.3f} {:>10.3f} {:>10.3f} {:>7} {:>12.0f} {:>9.1f} {:>8}{}\n",
                     row["batch"].get<int64_t>(),
                     nodes.is_null() ? "plain" : fmt::format("{} nodes", nodes.get<int64_t>()),
                     row["median_ms"].get<double>(), row["p05"].get<double>(), row["p95"].get<double>(),
                     row["n"].get<int64_t>(), row["examples_per_s"].get<double>(), row["gflops"].get<double>(),
                     share.is_null() ? "-" : fmt::format("{:.0f}%", 100 * share.get<double>()), unstable_mark(row));
}

std::string ratio_line(const Json& row) {
  const Json& over = row["over_plain"];
  return fmt::format("batch {}: graph / plain {}, medians of n = {} rounds\n", row["batch"].get<int64_t>(),
                     ratio_text(over), over["n"].get<int64_t>());
}

std::string header(const Config& config, Device device) {
  return mlp_text(config, device) + fmt::format("{:>6} {:>10} {:>10} {:>10} {:>10} {:>7} {:>12} {:>9} {:>8}\n", "batch",
                                                "step", "median ms", "5 %", "95 %", "n", "examples/s", "GFLOP/s",
                                                "of peak");
}

}  // namespace

int run_bench_step(const Config& config) {
  const Device device = prepare_machine(config);
  { const StepGraph refuses(device, config.graph == "on"); }  // where there are none, before anything is measured
  say_what_is_slow(config);
  Json document = bench_document(config, load_before_bench(config), device);
  std::optional<Peaks> peaks;  // those of the CPU
  if (device == Device::cpu) try {
      peaks = measure_peaks();
    } catch (const OutOfMemory&) {  // the steps may fit all the same
      std::cerr << "tapedeck bench step: the peak is not measured, which takes 256 MiB\n";
    }

  document["peak_gflops"] = peaks ? Json(peaks->gemm.best) : Json();
  document["warmup_steps"] = StepBench::warmup_steps;

  Turns turns(config);
  turns.print(header(config, device));
  const bool both = config.graph == "auto" && backend(device).can_capture();
  std::vector<Entry> entries;
  for (const int64_t batch : config.batches)
    for (const bool graph : both ? std::vector{false, true} : std::vector{config.graph == "on"})
      entries.push_back({batch, graph});
  document["rows"] = Json::array();
  for (int64_t round = 0; round < config.rounds; ++round)
    for (size_t i = 0; i < entries.size(); ++i) {
      Entry& entry = entries[i];
      if (!entry.fits) continue;
      turns.say(round, entry.size());
      entry.fits = turns.fit(entry.size(), [&] {
        if (round == 0) entry.bench = std::make_unique<StepBench>(config, entry.batch, device, entry.graph);
        entry.bench->round(timed_steps(config, entry.batch, device));
      });
      if (!entry.fits) entry.bench.reset();  // its memory is the others'
      if (!entry.fits || round + 1 < config.rounds) continue;
      const StepBench* const plain = both && entry.graph ? entries[i - 1].bench.get() : nullptr;
      document["rows"].push_back(row_json(*entry.bench, plain, document["peak_gflops"]));
      turns.print(line(document["rows"].back()));
    }
  turns.add_dropped(document);

  std::string text;
  for (const Json& row : document["rows"])
    if (row.contains("over_plain")) text += ratio_line(row);
  if (peaks)
    text += fmt::format("gemm peak of this machine: {:.1f} GFLOP/s (best of n = {}, median {:.1f}; {})\n",
                        peaks->gemm.best, peaks->gemm.n, peaks->gemm.median, peaks->gemm.how);
  print_bench(config, document, text);
  turns.check();
  return exit_done;
}

}  // namespace tapedeck
