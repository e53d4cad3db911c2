// Where this build lies and how it was made. Functions rather than macros: the other tests then compile to the same
// objects in every build folder, and ccache shares them.
#pragma once
#include <string>

namespace tapedeck::test {

std::string source_dir();
std::string build_dir();  // holds the program
std::string compiler();
std::string sanitizers();  // "address,undefined"; "" for none

}  // namespace tapedeck::test
