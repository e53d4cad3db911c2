// tapedeck bench precision: the training step of `bench step` in fp32, bf16 and fp16, the last with a dynamic and with
// a fixed loss scale, in turns: time, what the tape saves, and how far the outputs are from those in fp64.
#include <fmt/format.h>

#include <memory>

#include "apps/bench_report.h"
#include "apps/bench_turns.h"
#include "apps/commands.h"
#include "apps/stats.h"
#include "apps/step_bench.h"

namespace tapedeck {
namespace {

struct Form {
  const char *precision, *loss_scale;
  std::string name() const {
    return std::string(precision) + (std::string_view(loss_scale) == "1" ? ", loss scale 1" : "");
  }
};
constexpr Form forms[] = {{"fp32", "dynamic"}, {"bf16", "dynamic"}, {"fp16", "dynamic"}, {"fp16", "1"}};

Config in_form(Config config, const Form& form) {
  config.precision = form.precision, config.loss_scale = form.loss_scale;
  return config;
}

struct Entry {
  Form form;
  double error = 0;  // of the outputs before the first step
  std::unique_ptr<StepBench> bench = nullptr;
};

Json row_json(const Entry& entry, const Entry& single) {
  const StepBench& bench = *entry.bench;
  const bool scaled = std::string_view(entry.form.precision) == "fp16";
  Json row = bench_row("precision", {{"batch", bench.batch},
                                     {"precision", entry.form.precision},
                                     {"loss_scale", scaled ? Json(entry.form.loss_scale) : Json()}});
  add_times(row, "median_ms", bench.milliseconds(), bench.round_medians());
  row["saved_bytes"] = bench.saved_bytes();
  row["saved_share"] = static_cast<double>(bench.saved_bytes()) / static_cast<double>(single.bench->saved_bytes());
  row["error"] = entry.error;
  add_ratio(row["over_fp32"], bench.round_medians(), single.bench->round_medians());
  return row;
}

std::string line(const Json& row, const Form& form) {
  return fmt::format("{:>6}  {:<18} {:>10.3f} {:>6} {:>22} {:>12} {:>6.2f} {:>10.1e}{}\n", row["batch"].get<int64_t>(),
                     form.name(), row["median_ms"].get<double>(), row["n"].get<int64_t>(), ratio_text(row["over_fp32"]),
                     row["saved_bytes"].get<int64_t>(), row["saved_share"].get<double>(), row["error"].get<double>(),
                     unstable_mark(row));
}

}  // namespace

int run_bench_precision(const Config& config) {
  const Device device = prepare_machine(config);
  for (const char* precision : {"fp16", "bf16"}) {
    Config half = config;
    half.precision = precision;
    say_what_is_slow(half);
  }
  Json document = bench_document(config, load_before_bench(config), device);
  document["warmup_steps"] = StepBench::warmup_steps;
  document["rows"] = Json::array();
  Turns turns(config);
  turns.print(
      fmt::format("the step of bench step on {}, {} thread{}; n steps in {} rounds, {} warm-up steps before each "
                  "left out\n{:>6}  {:<18} {:>10} {:>6} {:>22} {:>12} {:>6} {:>10}\n",
                  name(device), threads(), threads() == 1 ? "" : "s", config.rounds, StepBench::warmup_steps, "batch",
                  "precision", "median ms", "n", "over fp32", "bytes saved", "share", "error"));
  std::string text;
  for (const int64_t batch : config.batches) {
    const std::string size = fmt::format("batch {}", batch);
    std::vector<Entry> entries;
    const int64_t steps = timed_steps(config, batch, device);
    const bool fits = turns.fit(size, [&] {
      const std::vector<double> exact = StepBench(in_form(config, {"fp64", "dynamic"}), batch, device, false).outputs();
      for (const Form& form : forms) {
        entries.push_back({form});
        entries.back().bench = std::make_unique<StepBench>(in_form(config, form), batch, device, false);
        entries.back().error = relative_error(entries.back().bench->outputs(), exact);
      }
      for (int64_t round = 0; round < config.rounds; ++round)
        for (const Entry& entry : entries) {
          turns.say(round, size + " " + entry.form.name());
          entry.bench->round(steps);
        }
    });
    if (!fits) continue;
    for (const Entry& entry : entries) {
      document["rows"].push_back(row_json(entry, entries[0]));
      turns.print(line(document["rows"].back(), entry.form));
    }
    Json dynamic;
    add_ratio(dynamic, entries[2].bench->round_medians(), entries[3].bench->round_medians());
    document["rows"].push_back(bench_row("dynamic_over_fixed", {{"batch", batch}}));
    document["rows"].back()["ratio"] = dynamic;
    text += fmt::format("batch {}: dynamic over fixed loss scale {}, medians of n = {} rounds\n", batch,
                        ratio_text(dynamic), dynamic["n"].get<int64_t>());
  }
  turns.add_dropped(document);
  print_bench(config, document, text);
  turns.check();
  return exit_done;
}

}  // namespace tapedeck
