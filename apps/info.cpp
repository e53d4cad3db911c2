// tapedeck info: the machine that runs this, the build, the devices, and the measured ceilings that figures are
// compared with.
#include <fmt/format.h>

#include <iostream>
#include <optional>

#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/machine.h"
#include "apps/peaks.h"
#include "apps/record.h"
#include "engine/device.h"
#include "engine/gpu.h"

namespace tapedeck {
namespace {

struct DeviceText {
  std::string name, what;
  std::optional<Gpu> gpu;
};

std::vector<DeviceText> devices() {
  std::vector<DeviceText> all = {{"cpu", "loops over threads, matrix products by the libraries above", {}}};
  const CudaVersions versions = cuda_versions();
  for (const Gpu& gpu : gpus())
    all.push_back(
        {fmt::format("cuda:{}", all.size() - 1),
         fmt::format("{}, compute capability {}.{}, {} multiprocessors, {:.1f} GiB; driver {} (CUDA {})", gpu.name,
                     gpu.major, gpu.minor, gpu.multiprocessors, static_cast<double>(gpu.memory_bytes) / (1 << 30),
                     versions.driver, versions.driver_cuda),
         gpu});
  if (const std::string why = why_no_cuda(); !why.empty()) all.push_back({"cuda", "cannot be used: " + why, {}});
  all.push_back({"emulated", "runs GPU kernels lane by lane on the processor, to test them without a GPU; slow", {}});
  return all;
}

std::string load_sentence(const Load& load, const Machine& machine) {
  const double taken = (1 - load.idle_share) * machine.logical_cores;
  if (!load.busy) return "idle: times measured now can be trusted";
  return fmt::format(
      "busy: others take {:.1f} of {} cores ({} threads want to run), so times measured now are too long and the peaks "
      "below too low; repeat when it is quiet, or leave cores free with --threads",
      taken, machine.logical_cores, load.runnable);
}

std::string peak_text(const char* what, const Peak& peak, const char* unit) {
  return fmt::format("{:<12} {:.1f} {} (best of n = {}; median {:.1f}; {})\n", what, peak.best, unit, peak.n,
                     peak.median, peak.how);
}

Json peak_json(const Peak& peak) {
  return {{"best", peak.best}, {"median", peak.median}, {"n", peak.n}, {"how", peak.how}};
}

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out.empty() ? "none known" : out;
}

std::string report(const Machine& machine, const Load& load, const Peaks& peaks) {
  const Build build = build_info();
  std::string out;
  const auto line = [&](const char* what, const std::string& value) { out += fmt::format("{:<12} {}\n", what, value); };
  line("processor", machine.processor);
  line("features", join(machine.features));
  line("cores", fmt::format("{} ({} allowed for this process); threads in use: {}", machine.logical_cores,
                            machine.allowed_cores, threads()));
  line("memory", machine.memory_bytes > 0
                     ? fmt::format("{:.1f} GiB", static_cast<double>(machine.memory_bytes) / (1 << 30))
                     : "unknown");
  line("version", fmt::format("{}, commit {}", build.version, build.commit));
  line("compiler", build.compiler);
  line("flags", build.flags);
  line("libraries", build.libraries);
  for (const DeviceText& device : devices()) line("device", fmt::format("{}: {}", device.name, device.what));
  line("load", load_sentence(load, machine));
  out += peak_text("gemm peak", peaks.gemm, "GFLOP/s");
  return out + peak_text("copy peak", peaks.copy, "GB/s");
}

}  // namespace

int run_info(const Config& config) {
  set_threads(static_cast<int>(config.threads));
  const Machine machine = this_machine();
  const Load load = measure_load();  // before we are the ones who make it busy
  const Peaks peaks = measure_peaks();
  if (!config.json) {
    std::cout << report(machine, load, peaks);
    return exit_done;
  }
  Json out = {{"format_version", kFormatVersion}, {"machine", machine_json(machine, load, threads(), Device::cpu)}};
  for (const DeviceText& device : devices())
    out["devices"].push_back(
        {{"name", device.name}, {"what", device.what}, {"gpu", device.gpu ? gpu_json(*device.gpu) : Json()}});
  out["load"] = load_sentence(load, machine);
  out["peaks"] = {{"gemm_gflops", peak_json(peaks.gemm)}, {"copy_gb_per_s", peak_json(peaks.copy)}};
  std::cout << json_text(out) << "\n";
  return exit_done;
}

}  // namespace tapedeck
