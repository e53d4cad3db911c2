// A scaling fit as text and as JSON: every number with its n and how it was taken.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "apps/config.h"
#include "apps/scaling_fit.h"

namespace tapedeck {

Json fit_json(const ScalingFit& fit);         // what stands under "fit"; null for what is infinite or not there
std::string fit_text(const ScalingFit& fit);  // lines

}  // namespace tapedeck
