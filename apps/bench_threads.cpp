// tapedeck bench threads: the training step of an MLP with 1, 2, … n threads, which take turns, a round each: speed-up
// over one thread and the efficiency that is left of a thread. Before the first step all compute the same outputs.
#include <fmt/format.h>

#include <memory>

#include "apps/bench_report.h"
#include "apps/bench_turns.h"
#include "apps/commands.h"
#include "apps/stats.h"
#include "apps/step_bench.h"

namespace tapedeck {
namespace {

// 1, 2, … up to 8, then doubled, and the largest.
std::vector<int64_t> counts(int64_t most) {
  std::vector<int64_t> out;
  for (int64_t n = 1; n <= most; n = n < 8 ? n + 1 : 2 * n) out.push_back(n);
  if (out.back() != most) out.push_back(most);
  return out;
}

struct Entry {
  int64_t threads;
  std::unique_ptr<StepBench> bench = nullptr;
  double error = 0;  // of the outputs, to those of one thread
};

Json row_json(const Entry& entry, const Entry& one) {
  const StepBench& bench = *entry.bench;
  Json row = bench_row("threads", {{"batch", bench.batch}, {"threads", entry.threads}});
  add_times(row, "median_ms", bench.milliseconds(), bench.round_medians());
  add_ratio(row["speed_up"], one.bench->round_medians(), bench.round_medians());
  row["efficiency"] = row["speed_up"]["ratio"].get<double>() / static_cast<double>(entry.threads);
  row["error"] = entry.error;
  return row;
}

std::string line(const Json& row) {
  return fmt::format("{:>6} {:>8} {:>10.3f} {:>10.3f} {:>10.3f} {:>6}   {:<22} {:>9.0f}% {:>9.1e}{}\n",
                     row["batch"].get<int64_t>(), row["threads"].get<int64_t>(), row["median_ms"].get<double>(),
                     row["p05"].get<double>(), row["p95"].get<double>(), row["n"].get<int64_t>(),
                     ratio_text(row["speed_up"]), 100 * row["efficiency"].get<double>(), row["error"].get<double>(),
                     unstable_mark(row));
}

}  // namespace

int run_bench_threads(const Config& config) {
  const Device device = prepare_machine(config);
  if (device != Device::cpu)
    throw UsageError(
        text("bench threads: the threads are the CPU's, and --device {} computes elsewhere: use --device cpu",
             name(device)));
  say_what_is_slow(config);
  Json document = bench_document(config, load_before_bench(config), device);
  document["warmup_steps"] = StepBench::warmup_steps;
  document["rows"] = Json::array();
  Turns turns(config);
  turns.print(mlp_text(config, device) + fmt::format("{:>6} {:>8} {:>10} {:>10} {:>10} {:>6}   {:<22} {:>10} {:>9}\n",
                                                     "batch", "threads", "median ms", "5 %", "95 %", "n", "speed-up",
                                                     "efficiency", "differ"));
  for (const int64_t batch : config.batches) {
    const std::string size = fmt::format("batch {}", batch);
    std::vector<Entry> entries;
    std::vector<double> of_one;  // the outputs by one thread
    const bool fits = turns.fit(size, [&] {
      for (const int64_t n : counts(config.threads)) {
        set_threads(static_cast<int>(n));
        Entry entry{n, std::make_unique<StepBench>(config, batch, device, false)};
        const std::vector<double> outputs = entry.bench->outputs();
        if (n == 1) of_one = outputs;
        entry.error = relative_error(outputs, of_one);
        CHECK(entry.error <= 32 * eps(find_precision(config)),
              "bench threads: the outputs of {} threads are off those of one by {:.1e}", n, entry.error);
        entries.push_back(std::move(entry));
      }
      for (int64_t round = 0; round < config.rounds; ++round)
        for (const Entry& entry : entries) {
          turns.say(round, fmt::format("{}, {} thread{}", size, entry.threads, entry.threads == 1 ? "" : "s"));
          set_threads(static_cast<int>(entry.threads));
          entry.bench->round(timed_steps(config, batch, device));
        }
    });
    set_threads(static_cast<int>(config.threads));
    if (!fits) continue;
    for (const Entry& entry : entries) {
      document["rows"].push_back(row_json(entry, entries[0]));
      turns.print(line(document["rows"].back()));
    }
  }
  turns.add_dropped(document);
  print_bench(config, document, "speed-up: over one thread, medians of the rounds in pairs, 95 % interval\n");
  turns.check();
  return exit_done;
}

}  // namespace tapedeck
