// tapedeck bench launch: what it costs to ask a device for kernels that hardly compute: x += 1 over 1,024 floats, each
// behind the one before; asked one by one, and captured as a graph that is replayed. All ways take turns, a round each.
//
// The device starts idle: its time of one kernel holds the whole way there, and what is left of it at 400 kernels is
// the distance between two. Where the host asks more slowly than the device computes, the device's time is the host's.
#include <fmt/format.h>

#include <memory>

#include "apps/bench_report.h"
#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/device_time.h"
#include "apps/experiment.h"
#include "engine/backend.h"
#include "engine/tensor.h"
#include "ops/small_kernel.h"

namespace tapedeck {
namespace {

constexpr int64_t floats = 1024;
constexpr int64_t warmup_rounds = 3;

struct Microseconds {
  std::vector<double> host, device;
};

class Chain {  // so many kernels
 public:
  Chain(int64_t kernels, Device device) : kernels_(kernels), x_(Tensor::empty({floats}, DType::f32, device)) {
    fill(x_, 0);
    add_one(x_);  // plainly once: what a device prepares at first use happens here
    Backend& queues = backend(device);
    if (queues.can_capture()) graph_ = queues.capture([this] { ask(); });
    CHECK(!graph_ || graph_->nodes() == kernels, "{} kernels became a graph of {} nodes", kernels, graph_->nodes());
  }

  void round(bool warmup) {
    const double all = static_cast<double>(kernels_);
    measure([this] { ask(); }, all, all, one_by_one_, warmup);
    if (graph_) measure([this] { graph_->replay(); }, 1, all, replayed_, warmup);
  }

  void add_rows(Json& rows) const {
    rows.push_back(row("one by one", "host", "kernel", one_by_one_.host));
    rows.push_back(row("one by one", "device", "kernel", one_by_one_.device));
    rows.push_back(row("graph", "device", "node", replayed_.device));
    rows.push_back(row("graph", "host", "replay", replayed_.host));
  }

 private:
  void ask() const {
    for (int64_t i = 0; i < kernels_; ++i) add_one(x_);
  }

  template <class F>
  void measure(const F& work, double host_parts, double device_parts, Microseconds& out, bool warmup) const {
    fill(x_, 0);
    backend(x_.device()).sync();
    const WorkTime took = time_work(x_.device(), 1, work).front();
    const double ran = x_.doubles()[floats - 1];
    CHECK(ran == static_cast<double>(kernels_), "{} of {} kernels ran", ran, kernels_);
    if (warmup) return;
    out.host.push_back(took.asking * 1e6 / host_parts);
    out.device.push_back(took.device * 1e6 / device_parts);
  }

  Json row(const char* way, const char* clock, const char* per, const std::vector<double>& times) const {
    Json out = bench_row("launch", {{"kernels", kernels_}, {"way", way}, {"clock", clock}, {"per", per}});
    add_times(out, "median_us", times);
    return out;
  }

  const int64_t kernels_;
  const Tensor x_;
  std::unique_ptr<Graph> graph_;
  Microseconds one_by_one_, replayed_;
};

std::string cell(const Json& row) {
  if (row["n"] == 0) return "-";
  const auto number = [&](const char* key) {
    const double us = row[key].get<double>();
    return fmt::format("{:.{}f}", us, us < 10 ? 2 : us < 100 ? 1 : 0);
  };
  return fmt::format("{} ({} to {}){}", number("median_us"), number("p05"), number("p95"),
                     row["unstable"] == true ? "*" : "");
}

std::string table(const Json& document) {
  const Json& rows = document["rows"];
  std::string out = fmt::format(
      "x += 1 over {} floats, each kernel behind the one before, on {}; {} warm-up rounds left out\n"
      "µs: median (5 % to 95 %) of n = {} rounds; *: unstable, 95 % is above 1.5 times the median\n",
      floats, document["device"].get<std::string>(), warmup_rounds, rows[0]["n"].get<int64_t>());
  for (const char* note : {"emulation", "no_graphs"})
    if (!document[note].is_null()) out += document[note].get<std::string>() + "\n";
  out += fmt::format("{:>7}  {:<49} as a graph:\n", "", "one by one, a kernel:");
  const auto line = [&](auto kernels, const std::string& a, const std::string& b, const std::string& c,
                        const std::string& d) {
    out += fmt::format("{:>7}  {:<24} {:<24} {:<24} {}\n", kernels, a, b, c, d);
  };
  line("kernels", "host until it returns", "device, by events", "device, a node", "host, a replay");
  for (size_t i = 0; i < rows.size(); i += 4)
    line(rows[i]["kernels"].get<int64_t>(), cell(rows[i]), cell(rows[i + 1]), cell(rows[i + 2]), cell(rows[i + 3]));
  return out;
}

}  // namespace

int run_bench_launch(const Config& config) {
  const Device device = prepare_machine(config);
  say_what_is_slow(config);
  Json document = bench_document(config, load_before_bench(config), device);

  std::vector<std::unique_ptr<Chain>> chains;
  for (const int64_t kernels : {1, 10, 100, 400}) chains.push_back(std::make_unique<Chain>(kernels, device));
  for (int64_t round = -warmup_rounds; round < config.rounds; ++round)
    for (const auto& chain : chains) chain->round(round < 0);

  document["device"] = name(device);
  document["warmup_rounds"] = warmup_rounds;
  document["emulation"] = device == Device::emulated
                              ? Json(
                                    "These are times of an emulation, which runs a kernel on the CPU as soon as it is "
                                    "asked for: not of a GPU.")
                              : Json();
  document["no_graphs"] =
      backend(device).can_capture()
          ? Json()
          : Json(fmt::format("{} has no graphs to capture: their columns are empty.", name(device)));
  document["rows"] = Json::array();
  for (const auto& chain : chains) chain->add_rows(document["rows"]);
  print_bench(config, document, table(document));
  return exit_done;
}

}  // namespace tapedeck
