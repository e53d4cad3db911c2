// Devices: where numbers live and kernels run. `cpu` runs a functor in loops over threads, `cuda` on an NVIDIA GPU;
// `emulated` runs the same functor as a GPU would, lane by lane, to test GPU kernels without a GPU.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tapedeck {

enum class Device : uint8_t { cpu, emulated, cuda };

const char* name(Device device);

// The device of that name: cpu, emulated, cuda, or cuda:1, which chooses the second GPU for this process. Throws
// UsageError naming them. Whether it can be used, backend() finds out.
Device find_device(std::string_view name);

// Why Device::cuda cannot be used here, in half a sentence; "" where it can.
std::string why_no_cuda();

// Threads that CPU loops and gemm use. set_threads(0) takes one per core that this process may run on; it returns what
// was set, and throws Error for less than 0 or more than max_threads.
constexpr int max_threads = 1024;
int allowed_cores();  // 1 to max_threads; a container or taskset may allow fewer than the machine has
int threads();
int set_threads(int count);

}  // namespace tapedeck
