// The report of `tapedeck bench loader` for people, from its JSON document.
#pragma once
#include <string>

#include "apps/config.h"
#include "engine/device.h"

namespace tapedeck {

std::string bench_loader_text(const Json& document, const Config& config, Device device);

}  // namespace tapedeck
