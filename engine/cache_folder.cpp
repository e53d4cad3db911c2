#include "engine/cache_folder.h"

#include <cstdlib>
#include <string>

namespace tapedeck {

std::filesystem::path cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::filesystem::path folder = cache && *cache ? cache : std::string(home ? home : ".") + "/.cache";
  return folder / "tapedeck";
}

}  // namespace tapedeck
