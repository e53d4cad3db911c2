// Reads options from JSON: a flat object {"lr": 0.01, "hidden": [64, 64]} or a run's config.json, whose values stand
// beside their origins {"lr": {"value": 0.01, "origin": "flag"}}. Keys are the names of flags; _ serves for -.
#pragma once
#include <filesystem>

#include "apps/config.h"

namespace tapedeck {

// Sets what the file holds, with Origin::file. Throws UsageError: unreadable, not JSON, unknown or repeated key, wrong
// value, newer version.
void read_config_file(Config& config, const std::filesystem::path& file);

}  // namespace tapedeck
