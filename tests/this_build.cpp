#include "tests/this_build.h"

#include <filesystem>

namespace tapedeck::test {

std::string source_dir() { return SOURCE_DIR; }
std::string build_dir() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }
std::string compiler() { return COMPILER; }
std::string sanitizers() { return SANITIZERS; }

}  // namespace tapedeck::test
