// The machine that a number was measured on, and the build that measured it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/config.h"
#include "engine/device.h"
#include "engine/gpu.h"

namespace tapedeck {

struct Build {  // from compile definitions TAPEDECK_VERSION, _FLAGS, _LIBRARIES, _COMMIT
  std::string version, compiler, flags, libraries, commit;
};
Build build_info();
std::string version_text();  // what --version prints

struct Machine {
  std::string processor;              // "Intel(R) Xeon(R) …"; "unknown" where the system does not tell
  std::vector<std::string> features;  // instruction sets that matter here: avx2, fma, avx512f, …
  int logical_cores = 1;              // of the machine
  int allowed_cores = 1;              // that this process may run on
  int64_t memory_bytes = 0;           // 0: unknown
};
Machine this_machine();

struct Load {
  double idle_share = 1;  // of all cores, 0 to 1, while this process slept
  int runnable = 0;       // threads that run or want to, ours left out
  bool busy = false;      // half a core or more was taken by others
};
Load measure_load(double seconds = 0.06);  // sleeps that long

Json gpu_json(const Gpu& gpu);
// Everything above for machine.json; `threads` and `device` are what the run uses. What belongs to a GPU is null where
// it uses none.
Json machine_json(const Machine& machine, const Load& load, int64_t threads, Device device);

}  // namespace tapedeck
