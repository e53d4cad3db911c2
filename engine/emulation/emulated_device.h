// The emulated device as its users see it beyond Backend: how kernels reach its queue, and how a test steers it.
#pragma once
#include <string>
#include <type_traits>

#include "engine/emulation/block_engine.h"
#include "engine/emulation/streams.h"

namespace tapedeck::emulation {

Streams& streams();  // of the emulated device

// Whether equal arguments of a kernel have equal bytes: the compiler must be able to clear those between the members.
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define TAPEDECK_CLEARS_PADDING 1
#endif
#endif
#if defined(TAPEDECK_CLEARS_PADDING)
inline constexpr bool arguments_compare = true;  // g++
#else
inline constexpr bool arguments_compare = false;  // clang 14
#endif

// The bytes of a value; none where they would not compare.
template <class T>
std::string bytes_of(T value) {
  static_assert(std::is_trivially_copyable_v<T>, "a kernel's arguments travel to the device byte by byte");
#if defined(TAPEDECK_CLEARS_PADDING)
  __builtin_clear_padding(&value);
  return {reinterpret_cast<const char*>(&value), sizeof value};
#else
  (void)value;
  return {};
#endif
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
