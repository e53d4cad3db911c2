// --parallel N: the parts of a sweep as N processes of this program, each on its own cores.
#pragma once
#include <filesystem>

#include "apps/config.h"

namespace tapedeck {

// Starts them on the same folder and waits for all of them. What they ran lies in the folder then; a part that failed
// has said why on stderr, and what it left undone is done by whoever goes on. SIGINT and SIGTERM are passed on to them.
void run_parts(const Config& config, const std::filesystem::path& folder);

}  // namespace tapedeck
