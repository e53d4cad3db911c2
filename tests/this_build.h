// Where this build lies and how it was made. Functions rather than macros: the other tests then compile to the same
// objects in every build folder, and ccache shares them.
#pragma once
#include <string>

namespace tapedeck::test {

std::string source_dir();
std::string build_dir();  // where this program of tests lies, and tapedeck beside it
std::string compiler();
std::string sanitizers();  // "address,undefined"; "" for none

}  // namespace tapedeck::test
