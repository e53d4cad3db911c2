// What g++'s -fsanitize=thread calls in the kernel files of the race build. ThreadSanitizer's runtime is not linked:
// these functions take its place, and hand each access to the race detector. This file itself is not instrumented.
// The names and signatures are those of GCC's gcc/sanitizer.def.
#include <cstdint>
#include <cstring>

#include "engine/emulation/race_detector.h"

using tapedeck::emulation::Access;
using tapedeck::emulation::instrumented_access;
using tapedeck::emulation::kernel_runs;

// NOLINTBEGIN(bugprone-reserved-identifier): the compiler chose these names
#define BEHIND __builtin_return_address(0)

extern "C" {

void __tsan_init() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(void* p, size_t bytes) { instrumented_access(p, bytes, Access::read, BEHIND); }
void __tsan_write_range(void* p, size_t bytes) { instrumented_access(p, bytes, Access::write, BEHIND); }

#define LOADS_AND_STORES(bytes)                                                                       \
  void __tsan_read##bytes(void* p) { instrumented_access(p, bytes, Access::read, BEHIND); }           \
  void __tsan_write##bytes(void* p) { instrumented_access(p, bytes, Access::write, BEHIND); }         \
  void __tsan_unaligned_read##bytes(void* p) { instrumented_access(p, bytes, Access::read, BEHIND); } \
  void __tsan_unaligned_write##bytes(void* p) { instrumented_access(p, bytes, Access::write, BEHIND); }
LOADS_AND_STORES(1)
LOADS_AND_STORES(2)
LOADS_AND_STORES(4)
LOADS_AND_STORES(8)
LOADS_AND_STORES(16)

// Atomic operations, always in sequence: the detector does not look at their memory order.
#define UPDATE(bits, name)                                                                     \
  uint##bits##_t __tsan_atomic##bits##_##name(volatile void* p, uint##bits##_t value, int) {   \
    instrumented_access(const_cast<void*>(p), bits / 8, Access::atomic_update, BEHIND);        \
    return __atomic_##name(static_cast<volatile uint##bits##_t*>(p), value, __ATOMIC_SEQ_CST); \
  }
#define ATOMICS(bits)                                                                                                  \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile void* p, int) {                                             \
    instrumented_access(const_cast<const void*>(p), bits / 8, Access::atomic_read, BEHIND);                            \
    return __atomic_load_n(static_cast<const volatile uint##bits##_t*>(p), __ATOMIC_SEQ_CST);                          \
  }                                                                                                                    \
  void __tsan_atomic##bits##_store(volatile void* p, uint##bits##_t value, int) {                                      \
    instrumented_access(const_cast<void*>(p), bits / 8, Access::atomic_write, BEHIND);                                 \
    __atomic_store_n(static_cast<volatile uint##bits##_t*>(p), value, __ATOMIC_SEQ_CST);                               \
  }                                                                                                                    \
  uint##bits##_t __tsan_atomic##bits##_exchange(volatile void* p, uint##bits##_t value, int) {                         \
    instrumented_access(const_cast<void*>(p), bits / 8, Access::atomic_update, BEHIND);                                \
    return __atomic_exchange_n(static_cast<volatile uint##bits##_t*>(p), value, __ATOMIC_SEQ_CST);                     \
  }                                                                                                                    \
  bool __tsan_atomic##bits##_compare_exchange_strong(volatile void* p, void* expected, uint##bits##_t value, int,      \
                                                     int) {                                                            \
    instrumented_access(const_cast<void*>(p), bits / 8, Access::atomic_update, BEHIND);                                \
    return __atomic_compare_exchange_n(static_cast<volatile uint##bits##_t*>(p),                                       \
                                       static_cast<uint##bits##_t*>(expected), value, false, __ATOMIC_SEQ_CST,         \
                                       __ATOMIC_SEQ_CST);                                                              \
  }                                                                                                                    \
  bool __tsan_atomic##bits##_compare_exchange_weak(volatile void* p, void* expected, uint##bits##_t value, int, int) { \
    instrumented_access(const_cast<void*>(p), bits / 8, Access::atomic_update, BEHIND);                                \
    return __atomic_compare_exchange_n(static_cast<volatile uint##bits##_t*>(p),                                       \
                                       static_cast<uint##bits##_t*>(expected), value, true, __ATOMIC_SEQ_CST,          \
                                       __ATOMIC_SEQ_CST);                                                              \
  }                                                                                                                    \
  UPDATE(bits, fetch_add)                                                                                              \
  UPDATE(bits, fetch_sub)                                                                                              \
  UPDATE(bits, fetch_and)                                                                                              \
  UPDATE(bits, fetch_or)                                                                                               \
  UPDATE(bits, fetch_xor)
ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

// Copies by the C library's functions: the linker sends our calls here (-Wl,--wrap).
void* __real_memcpy(void* to, const void* from, size_t bytes);
void* __real_memmove(void* to, const void* from, size_t bytes);
void* __real_memset(void* to, int value, size_t bytes);

void* __wrap_memcpy(void* to, const void* from, size_t bytes) {
  if (kernel_runs()) {
    instrumented_access(from, bytes, Access::read, BEHIND);
    instrumented_access(to, bytes, Access::write, BEHIND);
  }
  return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, size_t bytes) {
  if (kernel_runs()) {
    instrumented_access(from, bytes, Access::read, BEHIND);
    instrumented_access(to, bytes, Access::write, BEHIND);
  }
  return __real_memmove(to, from, bytes);
}
void* __wrap_memset(void* to, int value, size_t bytes) {
  if (kernel_runs()) instrumented_access(to, bytes, Access::write, BEHIND);
  return __real_memset(to, value, bytes);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
