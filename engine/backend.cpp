#include "engine/backend.h"

#include "engine/check.h"

namespace tapedeck {

std::unique_ptr<Graph> Backend::capture(const std::function<void()>&) {
  throw Error("capture: this device runs everything at once and has no graphs: leave --graph off");
}

Backend& cpu_backend();
Backend& emulated_backend();
Backend& cuda_backend();

Backend& backend(Device device) {
  switch (device) {
    case Device::cpu: return cpu_backend();
    case Device::cuda: return cuda_backend();
    default: return emulated_backend();
  }
}

}  // namespace tapedeck
