// Where measurements that only save time are kept between runs: $XDG_CACHE_HOME/tapedeck, else ~/.cache/tapedeck.
#pragma once
#include <filesystem>

namespace tapedeck {

std::filesystem::path cache_folder();  // it may not exist yet

}  // namespace tapedeck
