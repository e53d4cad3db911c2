// What this process takes of the machine's memory.
#pragma once
#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace tapedeck::test {

inline size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool measures_resident = false;  // freed memory waits in AddressSanitizer's quarantine
#elif defined(__has_feature)
inline constexpr bool measures_resident = !__has_feature(address_sanitizer);
#else
inline constexpr bool measures_resident = true;
#endif

}  // namespace tapedeck::test
