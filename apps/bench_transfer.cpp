// tapedeck bench transfer: bytes between the host's memory and a device's: pageable, pinned, and pinned while the
// device computes. All ways take turns, a round each. With t_c to compute and t_t to transfer, work that waits takes
// t_c + t_t, and work beside it no less than max(t_c, t_t).
//
// Times are the device's, by events around the work. Those of the emulated device are logical: each copy and each
// kernel counts as a microsecond, one behind the other, so nothing overlaps there. What arrives is checked everywhere.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>

#include "apps/bench_report.h"
#include "apps/bench_turns.h"
#include "apps/commands.h"
#include "apps/experiment.h"
#include "apps/stats.h"
#include "engine/backend.h"
#include "engine/emulation/emulated_device.h"
#include "engine/pinned.h"
#include "ops/small_kernel.h"

namespace tapedeck {
namespace {

constexpr int64_t warmup_rounds = 2;
constexpr int64_t kernels = 4;  // beside a transfer

enum Way { pageable, pinned, computing, behind, beside };
constexpr const char* ways[] = {"pageable", "pinned", "computing alone", "pinned, behind computing",
                                "pinned, beside computing"};

class TransferBench {
 public:
  TransferBench(int64_t bytes, bool to_device, Device device)
      : bytes(bytes),
        to_device(to_device),
        device_(device),
        queues_(backend(device)),
        there_(Tensor::empty({bytes / 4}, DType::f32, device)),
        computed_(Tensor::empty({bytes / 4}, DType::f32, device)),
        plain_(static_cast<size_t>(bytes / 4)),
        pinned_(device, static_cast<size_t>(bytes)) {
    fill(computed_, 0);
  }

  void round(bool warmup) {
    for (const Way way : {pageable, pinned, computing, behind, beside}) {
      prepare();
      const double us = 1e6 * time(way);
      if (way != computing) check(way);
      if (!warmup) us_[way].push_back(us);
    }
  }

  std::vector<Json> rows() const {
    std::vector<Json> out;
    for (const Way way : {pageable, pinned, computing, behind, beside}) {
      Json row = bench_row("transfer", {{"bytes", bytes}, {"to", to_device ? "device" : "host"}, {"way", ways[way]}});
      add_times(row, "median_us", us_[way]);
      row["gb_per_s"] = device_ != Device::emulated && (way == pageable || way == pinned)
                            ? Json(static_cast<double>(bytes) / row["median_us"].get<double>() / 1e3)
                            : Json();
      if (way == pinned) add_ratio(row["over_pageable"], us_[pinned], us_[pageable]);
      if (way == beside) {
        const double bound = std::max(median(us_[computing]), median(us_[pinned]));
        row["bound_us"] = bound;
        row["over_bound"] = row["median_us"].get<double>() / bound;
        add_ratio(row["over_behind"], us_[beside], us_[behind]);
      }
      out.push_back(row);
    }
    return out;
  }

  const int64_t bytes;
  const bool to_device;

 private:
  float* there() const { return there_.ptr<float>(); }
  float* of_host(Way way) { return way == pageable ? plain_.data() : static_cast<float*>(pinned_.begin()); }

  // New numbers where the transfer begins, so that it must happen for the right ones to arrive.
  void prepare() {
    ++number_;
    for (const Way way : {pageable, pinned}) std::fill_n(of_host(way), bytes / 4, to_device ? number_ : 0.0f);
    fill(there_, to_device ? 0 : number_);
    queues_.sync();
  }
  void check(Way way) {
    const float arrived = to_device ? there_.values<float>().back() : of_host(way)[bytes / 4 - 1];
    CHECK(arrived == number_, "bench transfer: {} arrived by \"{}\", and {} was sent", arrived, ways[way], number_);
  }

  void compute() const {
    for (int64_t i = 0; i < kernels; ++i) add_one(computed_);
  }
  void copy(Queue queue) {
    float* const host = of_host(pinned);
    queues_.copy_later(queue, to_device ? there() : host, to_device ? host : there(), static_cast<size_t>(bytes));
  }

  double time(Way way) {
    const std::unique_ptr<Event> begin = queues_.event(), copied = queues_.event(), end = queues_.event();
    queues_.record(*begin, Queue::compute);
    queues_.wait(Queue::transfer, *begin);
    if (way == pageable) {
      float* const host = of_host(pageable);
      queues_.copy(to_device ? there() : host, to_device ? host : there(), static_cast<size_t>(bytes));
    }
    if (way != pageable && way != pinned) compute();
    if (way == pinned || way == beside) copy(Queue::transfer);
    if (way == behind) copy(Queue::compute);
    queues_.record(*copied, Queue::transfer);
    queues_.wait(Queue::compute, *copied);
    queues_.record(*end, Queue::compute);
    queues_.wait(*end);
    return queues_.seconds(*begin, *end);
  }

  const Device device_;
  Backend& queues_;
  const Tensor there_, computed_;
  std::vector<float> plain_;
  PinnedBuffer pinned_;
  float number_ = 0;
  std::array<std::vector<double>, 5> us_;
};

std::string line(const Json& row) {
  const std::string rate = row["gb_per_s"].is_null() ? "-" : fmt::format("{:.2f}", row["gb_per_s"].get<double>());
  std::string out =
      fmt::format("{:>9} {:<7} {:<25} {:>10.2f} {:>10.2f} {:>10.2f} {:>5} {:>8}", row["bytes"].get<int64_t>() / 1024,
                  row["to"].get<std::string>(), row["way"].get<std::string>(), row["median_us"].get<double>(),
                  row["p05"].get<double>(), row["p95"].get<double>(), row["n"].get<int64_t>(), rate);
  if (row.contains("over_pageable")) out += "  " + ratio_text(row["over_pageable"]) + " of pageable";
  if (row.contains("over_behind"))
    out += fmt::format("  {} of behind, {:.2f} of its bound", ratio_text(row["over_behind"]),
                       row["over_bound"].get<double>());
  return out + unstable_mark(row) + "\n";
}

}  // namespace

int run_bench_transfer(const Config& config) {
  const Device device = prepare_machine(config);
  if (device == Device::cpu)
    throw UsageError(
        "bench transfer: the CPU computes where the host's numbers lie, so nothing is transferred: use --device cuda, "
        "or "
        "--device emulated to check that the right numbers arrive");
  Json document = bench_document(config, load_before_bench(config), device);
  document["warmup_rounds"] = warmup_rounds;
  document["kernels"] = kernels;
  const bool logical = device == Device::emulated;
  document["times"] = logical ? "logical" : "of the device";
  document["rows"] = Json::array();
  std::optional<emulation::UseMode> lazy;
  std::optional<emulation::LogicalTime> ticks;
  if (logical) lazy.emplace(emulation::Mode::lazy), ticks.emplace(emulation::streams());

  Turns turns(config);
  turns.print(
      fmt::format("host and {}; computing: {} kernels over as many bytes; {} rounds, {} before them left out{}\n"
                  "{:>9} {:<7} {:<25} {:>10} {:>10} {:>10} {:>5} {:>8}\n",
                  name(device), kernels, config.rounds, warmup_rounds,
                  logical ? "\nlogical time: each copy and kernel counts as a microsecond, one behind the other" : "",
                  "KiB", "to", "way", "median us", "5 %", "95 %", "n", "GB/s"));
  for (const int64_t kib : config.sizes)
    for (const bool to_device : {true, false}) {
      const std::string size = fmt::format("{} KiB to the {}", kib, to_device ? "device" : "host");
      turns.fit(size, [&] {
        TransferBench bench(kib * 1024, to_device, device);
        for (int64_t round = -warmup_rounds; round < config.rounds; ++round) {
          turns.say(round, size);
          bench.round(round < 0);
        }
        for (const Json& row : bench.rows()) {
          document["rows"].push_back(row);
          turns.print(line(row));
        }
      });
    }
  turns.add_dropped(document);
  print_bench(config, document, "");
  turns.check();
  return exit_done;
}

}  // namespace tapedeck
