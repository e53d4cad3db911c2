// What arena and emulation tell AddressSanitizer (bytes not to be touched, switches of stacks); empty in other builds.
#pragma once
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define TAPEDECK_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TAPEDECK_ADDRESS_SANITIZER 1
#endif
#endif

#if defined(TAPEDECK_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace tapedeck {

#if defined(TAPEDECK_ADDRESS_SANITIZER)

constexpr bool under_address_sanitizer = true;
inline void poison(const void* p, size_t bytes) { __asan_poison_memory_region(p, bytes); }
inline void unpoison(const void* p, size_t bytes) { __asan_unpoison_memory_region(p, bytes); }
inline void start_switch(void** save_fake_stack, const void* to_bottom, size_t to_bytes) {
  __sanitizer_start_switch_fiber(save_fake_stack, to_bottom, to_bytes);
}
inline void finish_switch(void* fake_stack, const void** from_bottom, size_t* from_bytes) {
  __sanitizer_finish_switch_fiber(fake_stack, from_bottom, from_bytes);
}

#else

constexpr bool under_address_sanitizer = false;
inline void poison(const void*, size_t) {}
inline void unpoison(const void*, size_t) {}
inline void start_switch(void**, const void*, size_t) {}
inline void finish_switch(void*, const void**, size_t*) {}

#endif

}  // namespace tapedeck
