#include "apps/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "engine/device.h"

#ifndef TAPEDECK_VERSION
#define TAPEDECK_VERSION "development"
#endif
#ifndef TAPEDECK_FLAGS
#define TAPEDECK_FLAGS "unknown"
#endif
#ifndef TAPEDECK_LIBRARIES
#define TAPEDECK_LIBRARIES "unknown"
#endif
#ifndef TAPEDECK_COMMIT
#define TAPEDECK_COMMIT "unknown"
#endif

namespace tapedeck {
namespace {

// Of the many flags that a processor has, those that decide how fast a network trains.
constexpr std::string_view kFeatures[] = {
    "sse4_2",   "avx",      "avx2",        "fma",         "f16c",        "avx_vnni", "avx512f",  "avx512bw",
    "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "amx_int8",
    "asimd",    "asimdhp",  "asimddp",     "bf16",        "i8mm",        "sve",      "sve2"};

// The value behind the first of `keys` in /proc/cpuinfo, "" where there is none.
std::string cpuinfo(std::initializer_list<std::string_view> keys) {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    for (std::string_view key : keys)
      if (line.starts_with(key) && line.find(':') != line.npos)
        return line.substr(std::min(line.find(':') + 2, line.size()));
  return "";
}

struct CpuTicks {
  uint64_t idle = 0, total = 0;
};
CpuTicks cpu_ticks() {  // proc(5): cpu user nice system idle iowait irq softirq steal …
  std::ifstream in("/proc/stat");
  std::string word;
  in >> word;
  CpuTicks ticks;
  uint64_t value;
  for (int field = 0; field < 8 && in >> value; ++field) {
    ticks.total += value;
    if (field == 3 || field == 4) ticks.idle += value;
  }
  return ticks;
}

int runnable_threads() {  // proc(5), loadavg: 0.20 0.18 0.12 1/80 11206
  std::ifstream in("/proc/loadavg");
  std::string skip;
  int running = 1;
  in >> skip >> skip >> skip >> running;
  return std::max(0, running - 1);  // the one that reads this
}

}  // namespace

Build build_info() {
#if defined(__clang__)
  const std::string compiler = "clang++ " __clang_version__;
#elif defined(__GNUC__)
  const std::string compiler = "g++ " __VERSION__;
#else
  const std::string compiler = "unknown";
#endif
  return {TAPEDECK_VERSION, compiler, TAPEDECK_FLAGS, TAPEDECK_LIBRARIES, TAPEDECK_COMMIT};
}

std::string version_text() {
  const Build build = build_info();
  return fmt::format("tapedeck {}\ncompiler   {}\nflags      {}\nlibraries  {}\ncommit     {}\n", build.version,
                     build.compiler, build.flags, build.libraries, build.commit);
}

Machine this_machine() {
  Machine machine;
  machine.processor = cpuinfo({"model name", "Model", "Hardware", "CPU part"});
  if (machine.processor.empty()) machine.processor = "unknown";
  std::istringstream flags(cpuinfo({"flags", "Features"}));
  for (std::string flag; flags >> flag;)
    if (std::find(std::begin(kFeatures), std::end(kFeatures), flag) != std::end(kFeatures))
      machine.features.push_back(flag);
  machine.allowed_cores = allowed_cores();
  machine.logical_cores = static_cast<int>(std::max(1l, sysconf(_SC_NPROCESSORS_ONLN)));
  machine.memory_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return machine;
}

Load measure_load(double seconds) {
  const CpuTicks before = cpu_ticks();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const CpuTicks after = cpu_ticks();
  Load load;
  load.runnable = runnable_threads();
  const double total = static_cast<double>(after.total - before.total);
  if (total > 0) load.idle_share = std::clamp(static_cast<double>(after.idle - before.idle) / total, 0.0, 1.0);
  load.busy = (1 - load.idle_share) * this_machine().logical_cores >= 0.5;
  return load;
}

Json gpu_json(const Gpu& gpu) {
  return {{"name", gpu.name},
          {"compute_capability", fmt::format("{}.{}", gpu.major, gpu.minor)},
          {"multiprocessors", gpu.multiprocessors},
          {"memory_bytes", gpu.memory_bytes}};
}

Json machine_json(const Machine& machine, const Load& load, int64_t threads, Device device) {
  const Build build = build_info();
  const bool on_gpu = device == Device::cuda;
  const CudaVersions versions = on_gpu ? cuda_versions() : CudaVersions{};
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return {{"processor", machine.processor},
          {"features", machine.features},
          {"logical_cores", machine.logical_cores},
          {"allowed_cores", machine.allowed_cores},
          {"threads", threads},
          {"device", on_gpu ? fmt::format("cuda:{}", chosen_gpu()) : name(device)},
          {"gpu", on_gpu ? gpu_json(gpus().at(static_cast<size_t>(chosen_gpu()))) : Json()},
          {"driver", or_null(versions.driver)},
          {"cuda", {{"toolkit", or_null(versions.toolkit)}, {"driver", or_null(versions.driver_cuda)}}},
          {"memory_bytes", machine.memory_bytes},
          {"load", {{"idle_share", load.idle_share}, {"runnable", load.runnable}, {"busy", load.busy}}},
          {"version", build.version},
          {"compiler", build.compiler},
          {"flags", build.flags},
          {"libraries", build.libraries},
          {"commit", build.commit}};
}

}  // namespace tapedeck
