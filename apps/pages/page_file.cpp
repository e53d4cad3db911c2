#include "apps/pages/page_file.h"

#include <fmt/format.h>

#include "apps/files.h"
#include "apps/pages/html.h"
#include "engine/check.h"

namespace tapedeck {

namespace fs = std::filesystem;

void check_page_file(const fs::path& page, bool force) {
  if (fs::is_directory(page)) throw UsageError(fmt::format("--out {}: is a folder, needs a file", page.string()));
  if (!force && fs::is_regular_file(page) && read_file(page).find(generator_mark) == std::string::npos)
    throw UsageError(
        fmt::format("{}: is there already, and no page of tapedeck; choose another --out, or --force to replace it",
                    page.string()));
  check_writable(page);
}

}  // namespace tapedeck
