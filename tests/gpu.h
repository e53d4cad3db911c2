// The devices that tests run on. Cases that need a GPU have names that begin with "on a GPU: ".
#pragma once
#include <algorithm>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "engine/backend.h"
#include "engine/device.h"
#include "engine/gpu.h"

namespace tapedeck::test {

// Why there is none; "" where there is one. Of that a test takes some memory at its first call, and leaves the rest to
// the processes that it starts.
inline const std::string& why_no_gpu() {
  static const std::string why = [] {
    std::string none = why_no_cuda();
    if (none.empty()) limit_gpu_memory(size_t{4} << 30), backend(Device::cuda);
    return none;
  }();
  return why;
}

// Whether there is none; then prints the line that makes ctest list the case as skipped, and the case returns:
//   if (no_gpu()) return;
inline bool no_gpu() {
  const std::string& why = why_no_gpu();
  if (!why.empty()) std::cout << "skipped: no GPU: " << why << "\n";
  return !why.empty();
}

// Those that run kernels lane by lane and capture graphs: emulated, and cuda where there is a GPU.
inline std::vector<Device> devices_with_lanes() {
  std::vector<Device> devices = {Device::emulated};
  if (why_no_gpu().empty()) devices.push_back(Device::cuda);
  return devices;
}

inline std::vector<Device> all_devices() {
  std::vector<Device> devices = devices_with_lanes();
  devices.insert(devices.begin(), Device::cpu);
  return devices;
}

// A command line that computes and does not say where, as a test means it: on the CPU, whatever --device auto would
// take.
inline std::vector<std::string> on_cpu(std::vector<std::string> words, bool gpu_here = why_no_cuda().empty()) {
  const std::set<std::string> computing = {"train", "evaluate", "gradcheck", "graph", "bench"};
  const bool says = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    for (const char* option : {"--device", "--resume", "--config"})
      if (word == option || word.starts_with(option + std::string("="))) return true;
    return false;
  });
  if (gpu_here && !says && !words.empty() && computing.contains(words.front()))
    words.insert(words.end(), {"--device", "cpu"});
  return words;
}

}  // namespace tapedeck::test
