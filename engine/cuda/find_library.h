// Libraries of CUDA that are loaded when the program runs, so that it starts where they are absent.
#pragma once
#include <string>
#include <vector>

namespace tapedeck::cuda {

// The first that there is: of `names` by the loader's own search, then of `file` (a pattern, as libcupti.so.1[23]) in
// the toolkit's folders and where Python's packages of NVIDIA put it. Null, and the loader's words in `reason`, where
// there is none.
void* open_library(const std::vector<std::string>& names, const std::string& file, std::string& reason);

}  // namespace tapedeck::cuda
