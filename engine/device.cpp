#include "engine/device.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>

#include "engine/check.h"
#include "engine/gpu.h"

namespace tapedeck {
namespace {

std::atomic<int>& thread_count() {
  static std::atomic<int> count = allowed_cores();
  return count;
}

std::atomic<int>& gpu_index() {
  static std::atomic<int> index{0};
  return index;
}

}  // namespace

const char* name(Device device) {
  switch (device) {
    case Device::cpu: return "cpu";
    case Device::cuda: return "cuda";
    default: return "emulated";
  }
}

Device find_device(std::string_view wanted) {
  for (Device device : {Device::cpu, Device::cuda, Device::emulated})
    if (wanted == name(device)) return device;
  int index = -1;
  if (wanted.starts_with("cuda:") && wanted.size() <= 8) {
    const char* const end = wanted.data() + wanted.size();
    if (std::from_chars(wanted.data() + 5, end, index).ptr != end) index = -1;
  }
  if (index < 0)
    throw UsageError(text("device {}: unknown, use auto, cpu, cuda, cuda:1 (the second GPU) or emulated", wanted));
  choose_gpu(index);
  return Device::cuda;
}

void choose_gpu(int index) { gpu_index() = index; }
int chosen_gpu() { return gpu_index(); }

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
