// The instruction sets that this build may use beyond its processor family's common ground.
#pragma once

namespace tapedeck {

// Where cpuid tells of an instruction set, and whether the compiler's flags allowed it when this was built.
struct CpuFeature {
  const char* name;
  bool used;
  unsigned leaf, subleaf;
  enum Register { eax, ebx, ecx, edx } where;
  unsigned bit;
  enum State { none, avx, avx512 } state;  // registers that the system must save for it
};
struct CpuFeatures {
  const CpuFeature* begin;
  const CpuFeature* end;
};
extern const CpuFeatures cpu_features;  // constant data: reading it runs no code of cpu_features.cpp

}  // namespace tapedeck
