#include "tests/this_build.h"

namespace tapedeck::test {

std::string source_dir() { return SOURCE_DIR; }
std::string build_dir() { return BUILD_DIR; }
std::string compiler() { return COMPILER; }
std::string sanitizers() { return SANITIZERS; }

}  // namespace tapedeck::test
