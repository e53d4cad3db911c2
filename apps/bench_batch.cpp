// tapedeck bench batch: what an example costs by batch size, in the training step of a small MLP. Batch sizes take
// turns, a round each; to their times a cost τ(B) = a + c·B is fitted (step_cost.h). Before the first step every size
// computes the same outputs for the examples that all of them have.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "apps/bench_report.h"
#include "apps/bench_turns.h"
#include "apps/commands.h"
#include "apps/stats.h"
#include "apps/step_bench.h"
#include "apps/step_cost.h"

namespace tapedeck {
namespace {

struct Entry {
  int64_t batch;
  std::unique_ptr<StepBench> bench = nullptr;  // null once it did not fit into memory
};

// Throws Error where the outputs of two sizes differ by more than sums in another order explain.
double check_outputs(const std::vector<Entry>& entries, DType dtype) {
  std::vector<double> reference;
  double largest = 0;
  for (const Entry& entry : entries) {
    if (!entry.bench) continue;
    const std::vector<double> outputs = entry.bench->outputs();
    if (reference.empty()) reference = outputs;
    const size_t shared = std::min(reference.size(), outputs.size());
    const double error = relative_error(std::span(outputs).first(shared), std::span(reference).first(shared));
    CHECK(error <= 32 * eps(dtype), "bench batch: outputs at batch {} are off those of the smallest batch by {:.1e}",
          entry.batch, error);
    largest = std::max(largest, error);
    if (outputs.size() > reference.size()) reference = outputs;
  }
  return largest;
}

Json row_json(const StepBench& bench, const StepBench& smallest, const std::optional<StepCost>& cost) {
  const auto batch = static_cast<double>(bench.batch);
  Json row = bench_row("batch", {{"batch", bench.batch}});
  add_times(row, "median_ms", bench.milliseconds(), bench.round_medians());
  const double middle = row["median_ms"];
  row["us_per_example"] = middle / batch * 1e3;
  row["predicted_ms"] = cost ? Json(cost->at(batch)) : Json();
  row["predicted_over_measured"] = cost ? Json(cost->at(batch) / middle) : Json();
  std::vector<double> here, there;  // an example, round by round
  for (const double ms : bench.round_medians()) here.push_back(ms / batch);
  for (const double ms : smallest.round_medians()) there.push_back(ms / static_cast<double>(smallest.batch));
  add_ratio(row["cheaper"], there, here);
  return row;
}

std::string line(const Json& row) {
  const auto number = [&](const char* key, int digits) {
    return row[key].is_null() ? std::string("-") : fmt::format("{:.{}f}", row[key].get<double>(), digits);
  };
  return fmt::format("{:>6} {:>10} {:>10} {:>10} {:>7} {:>12} {:>24} {:>12} {:>7}{}\n", row["batch"].get<int64_t>(),
                     number("median_ms", 4), number("p05", 4), number("p95", 4), row["n"].get<int64_t>(),
                     number("us_per_example", 3), ratio_text(row["cheaper"]), number("predicted_ms", 4),
                     number("predicted_over_measured", 2), unstable_mark(row));
}

std::string table(const Json& rows, int64_t smallest) {
  std::string out =
      fmt::format("{:>6} {:>10} {:>10} {:>10} {:>7} {:>12} {:>24} {:>12} {:>7}\n", "batch", "median ms", "5 %", "95 %",
                  "n", "us/example", fmt::format("cheaper than at {}", smallest), "a + cB ms", "/ seen");
  for (const Json& row : rows) out += line(row);
  return out;
}

std::string fit_text(const std::optional<StepCost>& cost) {
  if (!cost) return "a + c·B takes two sizes, and one is left\n";
  const std::string fixed = fmt::format("a + c·B: {:.4f} ms a step", cost->fixed);
  if (cost->per_example == 0) return fixed + " at every size measured: no cost of an example shows; try larger ones\n";
  return fmt::format("{} and {:.3f} us an example, the floor; of a step of {:.0f} examples half is overhead\n", fixed,
                     cost->per_example * 1e3, cost->balance());
}

}  // namespace

int run_bench_batch(const Config& config) {
  std::vector<int64_t> batches = config.batches;
  std::sort(batches.begin(), batches.end());
  if (batches.size() < 2)
    throw UsageError(fmt::format("--batches {}: a cost a + c·B needs two sizes or more", config.batches[0]));
  const Device device = prepare_machine(config);
  say_what_is_slow(config);
  Json document = bench_document(config, load_before_bench(config), device);
  document["warmup_steps"] = StepBench::warmup_steps;
  Turns turns(config);
  std::vector<Entry> entries;
  for (const int64_t batch : batches) entries.push_back({batch});
  const auto size = [](const Entry& entry) { return fmt::format("batch {}", entry.batch); };
  const auto drop_the_gone = [&] { std::erase_if(entries, [](const Entry& entry) { return !entry.bench; }); };
  for (Entry& entry : entries)
    turns.fit(size(entry),
              [&] { entry.bench = std::make_unique<StepBench>(config, entry.batch, device, config.graph == "on"); });
  drop_the_gone();
  document["outputs_error"] = check_outputs(entries, find_precision(config));
  for (int64_t round = 0; round < config.rounds; ++round) {
    for (Entry& entry : entries) {
      turns.say(round, size(entry));
      if (!turns.fit(size(entry), [&] { entry.bench->round(timed_steps(config, entry.batch, device)); }))
        entry.bench.reset();
    }
    drop_the_gone();
  }
  std::vector<double> sizes, times;
  for (const Entry& entry : entries) {
    sizes.push_back(static_cast<double>(entry.batch));
    times.push_back(median(entry.bench->milliseconds()));
  }
  std::optional<StepCost> cost;
  if (entries.size() > 1) cost = fit_step_cost(sizes, times);
  document["fit"] = cost ? Json{{"a_ms", cost->fixed},
                                {"c_us_per_example", cost->per_example * 1e3},
                                {"balance", cost->per_example > 0 ? Json(cost->balance()) : Json()}}
                         : Json();
  document["rows"] = Json::array();
  for (const Entry& entry : entries) document["rows"].push_back(row_json(*entry.bench, *entries[0].bench, cost));
  turns.add_dropped(document);
  std::string text;
  if (!entries.empty())
    text = mlp_text(config, device) + table(document["rows"], entries[0].batch) + fit_text(cost) +
           fmt::format("outputs of all sizes agree within {:.1e}\n", document["outputs_error"].get<double>());
  print_bench(config, document, text);
  turns.check();
  return exit_done;
}

}  // namespace tapedeck
