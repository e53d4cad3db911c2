#include "engine/backend.h"

namespace tapedeck {

Backend& cpu_backend();
Backend& emulated_backend();

Backend& backend(Device device) { return device == Device::cpu ? cpu_backend() : emulated_backend(); }

}  // namespace tapedeck
