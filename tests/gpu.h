// For tests that need a GPU; their names begin with "on a GPU: ".
#pragma once
#include <iostream>
#include <string>

#include "engine/device.h"

namespace tapedeck::test {

// Whether there is none; then prints the line that makes ctest list the case as skipped, and the case returns:
//   if (no_gpu()) return;
inline bool no_gpu() {
  const std::string why = why_no_cuda();
  if (!why.empty()) std::cout << "skipped: no GPU: " << why << "\n";
  return !why.empty();
}

}  // namespace tapedeck::test
