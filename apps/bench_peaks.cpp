// tapedeck bench peaks: what a device can do at best: products in each precision, and x += 1 over arrays that fit into
// a cache and over those that do not. On the CPU the two ceilings that `profile` and `info` compare with are measured
// and stored as well.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/bench_report.h"
#include "apps/bench_turns.h"
#include "apps/commands.h"
#include "apps/device_time.h"
#include "apps/experiment.h"
#include "apps/matmul_bench.h"
#include "apps/peaks.h"
#include "apps/stats.h"
#include "engine/backend.h"
#include "ops/small_kernel.h"

namespace tapedeck {
namespace {

class PassBench {  // x += 1, in blocks of calls
 public:
  PassBench(int64_t bytes, Device device) : x_(Tensor::empty({bytes / 4}, DType::f32, device)) {
    calls_ = device == Device::emulated ? 1 : std::clamp<int64_t>((8 << 20) / bytes, 1, 1000);
  }

  void round(int64_t blocks) {
    fill(x_, 0);
    const std::vector<WorkTime> took = time_work(x_.device(), blocks + 1, [this] {
      for (int64_t i = 0; i < calls_; ++i) add_one(x_);
    });
    const std::vector<float> now = x_.values<float>();
    const float ran = std::min(static_cast<float>((blocks + 1) * calls_), 0x1p24f);  // where f32 + 1 stays as it is
    CHECK(now.front() == ran && now.back() == ran, "bench peaks: {} and {} of {} passes ran", now.front(), now.back(),
          ran);
    const size_t before = microseconds.size();
    for (const WorkTime& time : std::span(took).subspan(1))  // the first finds cold caches
      microseconds.push_back(time.device * 1e6 / static_cast<double>(calls_));
    round_medians.push_back(median(std::span(microseconds).subspan(before)));
  }

  double amount() const { return 2.0 * static_cast<double>(x_.bytes()); }  // read and written
  std::vector<double> microseconds, round_medians;

 private:
  const Tensor x_;
  int64_t calls_;
};

Json row_json(Json row, std::span<const double> times, std::span<const double> rounds, double amount,
              const char* unit) {
  add_times(row, "median_us", times, rounds);
  row["unit"] = unit;
  row["median_rate"] = amount / row["median_us"].get<double>() / 1e3;
  row["best_rate"] = amount / *std::min_element(times.begin(), times.end()) / 1e3;
  return row;
}

std::string line(const Json& row) {
  const bool product = row["what"] == "product";
  const std::string at =
      product ? fmt::format("n = {}, {}", row["size"].get<int64_t>(), row["precision"].get<std::string>())
              : fmt::format("{} KiB", row["bytes"].get<int64_t>() / 1024);
  return fmt::format("{:<9} {:<16} {:>10.1f} {:>10.1f} {:<8} {:>5}{}\n", row["what"].get<std::string>(), at,
                     row["best_rate"].get<double>(), row["median_rate"].get<double>(), row["unit"].get<std::string>(),
                     row["n"].get<int64_t>(), unstable_mark(row));
}

struct Entry {
  Json row;
  std::unique_ptr<MatmulBench> product = nullptr;
  std::unique_ptr<PassBench> pass = nullptr;
  bool gone = false;  // did not fit, or failed

  void round(const Config& config) {
    if (product) product->round(config.steps.value_or(product->a_few()));
    if (pass) pass->round(config.steps.value_or(20));
  }
  Json json() const {
    if (product) {
      product->check();
      return row_json(row, product->microseconds(), product->round_medians(), product->flops(), "GFLOP/s");
    }
    return row_json(row, pass->microseconds, pass->round_medians, pass->amount(), "GB/s");
  }
};

}  // namespace

int run_bench_peaks(const Config& config) {
  const Device device = prepare_machine(config);
  Json document = bench_document(config, load_before_bench(config), device);
  document["rows"] = Json::array();
  Turns turns(config);
  turns.print(fmt::format(
      "{}, {} thread{}; {} rounds, a block of calls before each left out\n"
      "{:<9} {:<16} {:>10} {:>10} {:<8} {:>5}\n",
      name(device), threads(), threads() == 1 ? "" : "s", config.rounds, "what", "at", "best", "median", "", "n"));
  const int64_t size = device == Device::cuda ? 8192 : device == Device::cpu ? 1024 : 64;
  std::vector<Entry> entries;
  const auto add = [&](const std::string& name, Json row, auto&& make) {
    turns.fit(name, [&] {
      Entry entry{std::move(row)};
      make(entry);
      entries.push_back(std::move(entry));
    });
  };
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    add(fmt::format("product in {}", precision_name(dtype)),
        bench_row("peak", {{"what", "product"}, {"precision", precision_name(dtype)}, {"size", size}}),
        [&](Entry& entry) { entry.product = std::make_unique<MatmulBench>(size, device, dtype); });
  std::vector<int64_t> arrays = {16 << 10, 256 << 10, 4 << 20, 128 << 20};
  if (device == Device::cuda) arrays = {256 << 10, 16 << 20, 256 << 20, 1 << 30};
  if (device == Device::emulated) arrays = {16 << 10};
  for (const int64_t bytes : arrays)
    add(fmt::format("{} KiB", bytes / 1024), bench_row("peak", {{"what", "x += 1"}, {"bytes", bytes}}),
        [&](Entry& entry) { entry.pass = std::make_unique<PassBench>(bytes, device); });
  for (int64_t round = 0; round < config.rounds; ++round)
    for (Entry& entry : entries) {
      if (entry.gone) continue;
      turns.say(round, entry.row["key"]);
      entry.gone = !turns.fit(entry.row["key"], [&] { entry.round(config); });
    }
  for (const Entry& entry : entries) {
    if (entry.gone) continue;
    turns.fit(entry.row["key"], [&] {
      document["rows"].push_back(entry.json());
      turns.print(line(document["rows"].back()));
    });
  }
  std::string text = "x += 1: bytes read and written; a small array lies in a cache, and asking for it costs as well\n";
  if (device == Device::emulated) text = "rates of an emulation, which takes a lane at a time: not of a GPU\n";
  if (device == Device::cpu)
    turns.fit("the stored ceilings", [&] {
      const Peaks peaks = measure_peaks();
      document["stored"] = Json::object();
      for (const auto& [what, peak] : {std::pair("gemm_gflops", &peaks.gemm), std::pair("copy_gb_per_s", &peaks.copy)})
        document["stored"][what] = {{"best", peak->best}, {"median", peak->median}, {"n", peak->n}, {"how", peak->how}};
      text += fmt::format(
          "ceilings of profile and info, the best so far: {:.1f} GFLOP/s (best of n = {}, median {:.1f}; {}), {:.1f} "
          "GB/s (best of n = "
          "{}, "
          "median {:.1f}; copy, {})\n",
          peaks.gemm.best, peaks.gemm.n, peaks.gemm.median, peaks.gemm.how, peaks.copy.best, peaks.copy.n,
          peaks.copy.median, peaks.copy.how);
    });
  turns.add_dropped(document);
  print_bench(config, document, text);
  turns.check();
  return exit_done;
}

}  // namespace tapedeck
