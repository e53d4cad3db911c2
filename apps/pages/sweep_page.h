// The page of a sweep, from its summary.json and machine.json.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "apps/config.h"

namespace tapedeck {

std::string sweep_page(const Json& summary, const Json& machine);

}  // namespace tapedeck
