// The emulated device as its users see it beyond Backend: how kernels reach its queue, and how a test steers it.
#pragma once
#include <string>
#include <type_traits>

#include "engine/emulation/block_engine.h"
#include "engine/emulation/streams.h"

namespace tapedeck::emulation {

Streams& streams();  // of the emulated device

// The bytes of a value, those between its members as zeros: equal values have equal bytes.
template <class T>
std::string bytes_of(T value) {
  static_assert(std::is_trivially_copyable_v<T>, "a kernel's arguments travel to the device byte by byte");
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(&value);
#endif
#endif
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

void run_checked(const Launch& launch);  // the grid, then the arena's red zones; both throw Error

// Asks the compute queue to run a grid with a copy of the functor, as a launch on a GPU copies it.
template <class Kernel>
void ask_for_kernel(Launch launch, const Kernel& kernel) {
  Work work{launch.kernel,
            [launch, kernel]() mutable {
              launch.functor = &kernel;
              run_checked(launch);
            },
            {}};
  if (streams().capturing()) work.arguments = bytes_of(kernel);
  streams().ask(Queue::compute, std::move(work));
}

// While it lives, the emulated device works in this mode.
class UseMode {
 public:
  explicit UseMode(Mode mode) : before_(streams().mode()) { streams().set_mode(mode); }
  ~UseMode() { streams().set_mode(before_); }
  UseMode(const UseMode&) = delete;
  UseMode& operator=(const UseMode&) = delete;

 private:
  Mode before_;
};

}  // namespace tapedeck::emulation
