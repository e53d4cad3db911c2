// The page of a sweep, from its summary.json and machine.json, and that of a fit, from what `fit --json` prints. Both
// draw what is there: a sweep that ended early has lists that are empty, and numbers that are null.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "apps/config.h"

namespace tapedeck {

std::string sweep_page(const Json& summary, const Json& machine);
std::string sweep_setting(const Json& summary);  // what the result is a result of, as facts
std::string fit_page(const Json& document);
std::string fit_sentence(const Json& document);  // what a person may quote; "" where there is no critical size

}  // namespace tapedeck
