// Site: the file and line of a call, for messages, taken by a default argument:  void sync(Site site = Site::here());
// (clang 14 has no std::source_location.) On the GPU there is nobody to tell, so it is empty and costs no register.
#pragma once
#include "engine/hd.h"

namespace tapedeck {

struct Site {
#if ON_GPU
  HD static constexpr Site here() { return {}; }
#else
  const char* file;
  int line;
  HD static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
#endif
};

}  // namespace tapedeck
