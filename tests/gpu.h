// The devices that tests run on. Cases that need a GPU have names that begin with "on a GPU: ".
#pragma once
#include <iostream>
#include <string>
#include <vector>

#include "engine/device.h"

namespace tapedeck::test {

// Whether there is none; then prints the line that makes ctest list the case as skipped, and the case returns:
//   if (no_gpu()) return;
inline bool no_gpu() {
  const std::string why = why_no_cuda();
  if (!why.empty()) std::cout << "skipped: no GPU: " << why << "\n";
  return !why.empty();
}

// Those that run kernels lane by lane and capture graphs: emulated, and cuda where there is a GPU.
inline std::vector<Device> devices_with_lanes() {
  std::vector<Device> devices = {Device::emulated};
  if (why_no_cuda().empty()) devices.push_back(Device::cuda);
  return devices;
}

inline std::vector<Device> all_devices() {
  std::vector<Device> devices = devices_with_lanes();
  devices.insert(devices.begin(), Device::cpu);
  return devices;
}

}  // namespace tapedeck::test
