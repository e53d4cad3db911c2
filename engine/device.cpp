#include "engine/device.h"

#include <sched.h>

#include <algorithm>
#include <atomic>

#include "engine/check.h"

namespace tapedeck {
namespace {

std::atomic<int>& thread_count() {
  static std::atomic<int> count = allowed_cores();
  return count;
}

}  // namespace

const char* name(Device device) { return device == Device::cpu ? "cpu" : "emulated"; }

Device find_device(std::string_view wanted) {
  for (Device device : {Device::cpu, Device::emulated})
    if (wanted == name(device)) return device;
  throw UsageError(text("device {}: unknown, this build has cpu and emulated", wanted));
}

int allowed_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::clamp(CPU_COUNT(&set), 1, max_threads) : 1;
}

int threads() { return thread_count(); }

int set_threads(int count) {
  CHECK(count >= 0 && count <= max_threads, "threads: cannot use {} threads, only 1 to {}, or 0 for one a core", count,
        max_threads);
  thread_count() = count == 0 ? allowed_cores() : count;
  return thread_count();
}

}  // namespace tapedeck
