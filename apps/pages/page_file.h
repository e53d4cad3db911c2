// Where a page is written.
#pragma once
#include <filesystem>

namespace tapedeck {

// Before anything is computed: a page of ours may be replaced, another file only if forced. Throws UsageError, and
// Error where the disk fails.
void check_page_file(const std::filesystem::path& page, bool force);

}  // namespace tapedeck
