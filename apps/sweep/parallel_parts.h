// --parallel N: the parts of a sweep as N processes of this program, each on its own cores.
#pragma once
#include <filesystem>

#include "apps/config.h"

namespace tapedeck {

// Starts them on the same folder and waits for all of them. What they ran lies in the folder then. Where one fails or
// is killed the others are told to stop, since they would wait for its cells: what is left undone is for whoever goes
// on. SIGINT and SIGTERM are passed on to them.
void run_parts(const Config& config, const std::filesystem::path& folder);

bool is_part_of_parallel();  // this process was started by run_parts()

bool orphaned();  // in a part: whoever started it is gone, and so is the reason to go on

}  // namespace tapedeck
