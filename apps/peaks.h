// What this machine can do at best: the ceilings that figures are compared with. Measured, and cached in
// $XDG_CACHE_HOME/tapedeck/peaks.json under the machine's fingerprint (processor, threads, flags, libraries).
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace tapedeck {

struct Peak {
  double best = 0;    // the ceiling: the best run
  double median = 0;  // of n runs at the best size
  int n = 0;
  std::string how;  // "512x512x512, f32"
};
struct Peaks {
  Peak gemm;  // GFLOP/s of an f32 product, the best over a few sizes
  Peak copy;  // GB/s of copying an array larger than the caches, bytes read and bytes written
};

Peaks measure_peaks();  // with the current thread count, about 2 s; the better of that and what is cached, which it
                        // caches
std::optional<Peaks> cached_peaks();  // for this machine, build and thread count; none when never measured

}  // namespace tapedeck
