#include "engine/backend.h"

#include "engine/backends.h"
#include "engine/check.h"

namespace tapedeck {

std::unique_ptr<Graph> Backend::capture(const std::function<void()>&) {
  throw Error("capture: this device runs everything at once and has no graphs: leave --graph off");
}

// A GPU that has failed says so at every call from then on, and the CPU has nothing left to fail.
void Backend::sync_quietly() noexcept {
  try {
    sync();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
}

void refuse_while_capturing(const char* what) {
  throw Error(text("{}: a step is being captured; return the tensor from the step and read it after replay", what));
}

Backend& backend(Device device) {
  switch (device) {
    case Device::cpu: return cpu_backend();
    case Device::cuda: return cuda_backend();
    default: return emulated_backend();
  }
}

}  // namespace tapedeck
