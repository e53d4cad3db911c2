// A binary made for one processor (-march=native) meets another: say in a sentence which instruction sets are missing,
// instead of dying of an illegal instruction. This file alone is compiled for every processor of the family, and the
// loader calls it before any other code of ours or of a library (.preinit_array), so it leans on system calls only.
#include "apps/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <string.h>
#include <unistd.h>

namespace tapedeck {
namespace {

// Which registers the system saves when it switches threads: xgetbv 0, if cpuid says that there is one.
unsigned saved_registers() {
  unsigned a, b, c, d, low = 0, high = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) && (c >> 27 & 1)) __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

bool present(const CpuFeature& feature) {
  unsigned registers[4] = {};  // eax, ebx, ecx, edx
  if (!__get_cpuid_count(feature.leaf, feature.subleaf, &registers[0], &registers[1], &registers[2], &registers[3]))
    return false;
  const unsigned needed = feature.state == CpuFeature::avx512 ? 0xE6 : feature.state == CpuFeature::avx ? 0x06 : 0;
  return (registers[feature.where] >> feature.bit & 1) && (saved_registers() & needed) == needed;
}

void say(const char* words) {
  if (write(STDERR_FILENO, words, strlen(words)) < 0) _exit(1);
}

void check_processor() {
  bool complete = true;
  for (const CpuFeature* feature = cpu_features.begin; feature != cpu_features.end; ++feature) {
    if (!feature->used || present(*feature)) continue;
    say(complete ? "tapedeck: this binary uses instructions that this processor lacks (" : ", ");
    say(feature->name);
    complete = false;
  }
  if (complete) return;
  say("): build it here, or with -DTAPEDECK_NATIVE=OFF for every processor\n");
  _exit(1);
}

[[gnu::section(".preinit_array"), gnu::used, gnu::retain]] void (*const at_start)() = check_processor;

}  // namespace
}  // namespace tapedeck
#endif
