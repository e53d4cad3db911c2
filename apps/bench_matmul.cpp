// tapedeck bench matmul: C = A·B of n×n numbers, by size, device and precision. Devices and precisions of a size take
// turns, a round each. The first call is shown and left out: it pays for choosing and generating code. Numbers lie in
// each device's memory: what it costs to bring them there, bench transfer says.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "apps/bench_report.h"
#include "apps/bench_turns.h"
#include "apps/commands.h"
#include "apps/crossover.h"
#include "apps/experiment.h"
#include "apps/matmul_bench.h"
#include "apps/stats.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

// Without --sizes a GPU gets one more than the CPU, which would take half a minute for each such product.
bool belongs(const Config& config, int64_t size, Device device) {
  return config.origin("sizes") != Origin::fallback || device == Device::cuda || size <= 4096;
}

Json row_json(const MatmulBench& bench, const MatmulBench* cpu, const MatmulBench* fp32) {
  Json row = bench_row(
      "matmul", {{"size", bench.size}, {"device", name(bench.device)}, {"precision", precision_name(bench.dtype)}});
  add_times(row, "median_us", bench.microseconds(), bench.round_medians());
  const double middle = row["median_us"];
  row["calls_per_time"] = bench.calls();
  row["first_us"] = bench.first_us();
  row["first_over_median"] = bench.first_us() / middle;
  row["gflops"] = bench.flops() / middle / 1e3;
  row["error"] = bench.check();
  if (cpu && cpu != &bench) add_ratio(row["over_cpu"], bench.round_medians(), cpu->round_medians());
  if (fp32 && fp32 != &bench) add_ratio(row["over_fp32"], bench.round_medians(), fp32->round_medians());
  return row;
}

std::string line(const Json& row) {
  const auto ratio = [&](const char* key) { return row.contains(key) ? ratio_text(row[key]) : std::string("-"); };
  return fmt::format(
      "{:>6} {:<9} {:<5} {:>12.2f} {:>12.2f} {:>12.2f} {:>5} {:>9.1f} {:>8.0f}x {:>9.1e} {:>22} {:>22}{}\n",
      row["size"].get<int64_t>(), row["device"].get<std::string>(), row["precision"].get<std::string>(),
      row["median_us"].get<double>(), row["p05"].get<double>(), row["p95"].get<double>(), row["n"].get<int64_t>(),
      row["gflops"].get<double>(), row["first_over_median"].get<double>(), row["error"].get<double>(),
      ratio("over_fp32"), ratio("over_cpu"), unstable_mark(row));
}

std::string header(const Config& config) {
  return fmt::format(
      "C = A·B of size x size numbers, {} thread{} on the CPU; {} rounds, in which a time is the mean of a block of "
      "calls "
      "of\nabout a millisecond; the first call, two more and a block before each round are left out\n"
      "{:>6} {:<9} {:<5} {:>12} {:>12} {:>12} {:>5} {:>9} {:>9} {:>9} {:>22} {:>22}\n",
      threads(), threads() == 1 ? "" : "s", config.rounds, "size", "device", "", "median us", "5 %", "95 %", "n",
      "GFLOP/s", "first", "error", "over fp32", "over the CPU");
}

// The best rate of each device and precision, which the others are a share of.
void add_shares(Json& rows) {
  std::map<std::string, double> best;
  const auto kind = [](const Json& row) {
    return row["device"].get<std::string>() + " " + row["precision"].get<std::string>();
  };
  for (const Json& row : rows) best[kind(row)] = std::max(best[kind(row)], row["gflops"].get<double>());
  for (Json& row : rows) row["share_of_best"] = row["gflops"].get<double>() / best[kind(row)];
}

std::string shares_text(const Json& rows) {
  std::map<std::string, std::map<int64_t, double>> shares;
  std::string out = fmt::format("\nshare of the best median that a device and precision reached, by size\n{:<15}", "");
  std::set<int64_t> sizes;
  for (const Json& row : rows) sizes.insert(row["size"].get<int64_t>());
  for (const int64_t size : sizes) out += fmt::format("{:>7}", size);
  for (const Json& row : rows)
    shares[row["device"].get<std::string>() + " " + row["precision"].get<std::string>()][row["size"]] =
        row["share_of_best"];
  for (const auto& [kind, of_size] : shares) {
    out += fmt::format("\n{:<15}", kind);
    for (const int64_t size : sizes)
      out += of_size.contains(size) ? fmt::format("{:>6.0f}%", 100 * of_size.at(size)) : fmt::format("{:>7}", "-");
  }
  return out + "\n";
}

// From which size on the other device is faster than the CPU, for each precision.
Json crossover(const Json& rows, Device other) {
  Json out = Json::array();
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    const char* const precision = precision_name(dtype);
    std::vector<SizeRatio> sizes;
    for (const Json& row : rows) {
      if (row["device"] != name(other) || row["precision"] != precision || !row.contains("over_cpu")) continue;
      const Json& over = row["over_cpu"];
      std::optional<RatioInterval> ratio;
      if (!over["ratio_low"].is_null()) ratio = {over["ratio"], over["ratio_low"], over["ratio_high"], over["n"]};
      sizes.push_back({row["size"], ratio});
    }
    if (sizes.empty()) continue;
    const std::optional<int64_t> from = faster_from(sizes);
    out.push_back({{"device", name(other)},
                   {"precision", precision},
                   {"faster_from", from ? Json(*from) : Json()},
                   {"largest", sizes.back().size}});
  }
  return out;
}

std::string crossover_text(const Json& crossovers, int64_t rounds) {
  if (crossovers.empty()) return "\none device: beside a GPU this says from which size on it is faster than the CPU\n";
  std::string out = "\n";
  for (const Json& one : crossovers) {
    if (rounds < 2) return "\nno crossover from one round: it takes intervals; use --rounds 2 or more\n";
    const std::string kind = one["device"].get<std::string>() + " in " + one["precision"].get<std::string>();
    out += one["faster_from"].is_null()
               ? fmt::format("{} is not shown to be faster than the CPU at n = {}, the largest that both did\n", kind,
                             one["largest"].get<int64_t>())
               : fmt::format("{} is faster than the CPU from n = {} to {}, the largest that both did\n", kind,
                             one["faster_from"].get<int64_t>(), one["largest"].get<int64_t>());
  }
  return out + "(intervals of paired rounds below 1; numbers already lie on the device)\n";
}

}  // namespace

int run_bench_matmul(const Config& config) {
  const Device device = prepare_machine(config);
  Json document = bench_document(config, load_before_bench(config), device);
  std::vector<Device> devices = {Device::cpu};
  if (device != Device::cpu) devices.push_back(device);
  std::vector<DType> dtypes = {DType::f32, DType::bf16, DType::f16};
  if (config.origin("precision") != Origin::fallback) dtypes = {find_precision(config)};
  std::vector<int64_t> sizes = config.sizes;
  std::sort(sizes.begin(), sizes.end());

  Turns turns(config);
  turns.print(header(config));
  document["rows"] = Json::array();
  for (const int64_t size : sizes) {
    struct Entry {
      std::string name;
      Device device;
      DType dtype;
      std::unique_ptr<MatmulBench> bench = nullptr;
    };
    std::vector<Entry> entries;
    for (const Device where : devices)
      for (const DType dtype : dtypes)
        if (belongs(config, size, where))
          entries.push_back(
              {fmt::format("n = {} on {} in {}", size, name(where), precision_name(dtype)), where, dtype});
    for (int64_t round = 0; round < config.rounds; ++round)
      for (Entry& entry : entries) {
        if (round > 0 && !entry.bench) continue;
        turns.say(round, entry.name);
        const bool fits = turns.fit(entry.name, [&] {
          if (round == 0) entry.bench = std::make_unique<MatmulBench>(size, entry.device, entry.dtype);
          entry.bench->round(config.steps.value_or(entry.bench->a_few()));
        });
        if (!fits) entry.bench.reset();
      }
    const auto find = [&](Device where, DType dtype) -> const MatmulBench* {
      for (const Entry& entry : entries)
        if (entry.device == where && entry.dtype == dtype) return entry.bench.get();
      return nullptr;
    };
    for (const Entry& entry : entries) {
      if (!entry.bench) continue;
      turns.fit(entry.name, [&] {
        document["rows"].push_back(
            row_json(*entry.bench, find(Device::cpu, entry.dtype), find(entry.device, DType::f32)));
        turns.print(line(document["rows"].back()));
      });
    }
  }
  add_shares(document["rows"]);
  document["crossover"] = device == Device::cpu ? Json::array() : crossover(document["rows"], device);
  turns.add_dropped(document);
  print_bench(config, document, shares_text(document["rows"]) + crossover_text(document["crossover"], config.rounds));
  turns.check();
  return exit_done;
}

}  // namespace tapedeck
