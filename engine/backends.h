// The Backend of each device, for backend(). Each is made when it is first asked for.
#pragma once
#include "engine/backend.h"

namespace tapedeck {

Backend& cpu_backend();
Backend& emulated_backend();
Backend& cuda_backend();  // throws Error where there is none: why_no_cuda()

}  // namespace tapedeck
