// One row an instruction set: where cpuid reports it, from the manuals of Intel (volume 2A, CPUID) and AMD (volume 3,
// appendix D). Compiled with the flags of every other file, so that the compiler's own macros say what those may use.
#include "apps/cpu_features.h"

namespace tapedeck {
namespace {

// __AVX2__ is 1 when the flags allow it, and its own name when not.
#define TEXT_OF(macro) #macro
#define IS_DEFINED(macro) (TEXT_OF(macro)[0] == '1')

#if defined(__x86_64__)
using F = CpuFeature;
constexpr CpuFeature rows[] = {
    {"SSE3", IS_DEFINED(__SSE3__), 1, 0, F::ecx, 0, F::none},
    {"SSSE3", IS_DEFINED(__SSSE3__), 1, 0, F::ecx, 9, F::none},
    {"SSE4.1", IS_DEFINED(__SSE4_1__), 1, 0, F::ecx, 19, F::none},
    {"SSE4.2", IS_DEFINED(__SSE4_2__), 1, 0, F::ecx, 20, F::none},
    {"MOVBE", IS_DEFINED(__MOVBE__), 1, 0, F::ecx, 22, F::none},
    {"POPCNT", IS_DEFINED(__POPCNT__), 1, 0, F::ecx, 23, F::none},
    {"AVX", IS_DEFINED(__AVX__), 1, 0, F::ecx, 28, F::avx},
    {"F16C", IS_DEFINED(__F16C__), 1, 0, F::ecx, 29, F::avx},
    {"FMA", IS_DEFINED(__FMA__), 1, 0, F::ecx, 12, F::avx},
    {"AVX2", IS_DEFINED(__AVX2__), 7, 0, F::ebx, 5, F::avx},
    {"BMI1", IS_DEFINED(__BMI__), 7, 0, F::ebx, 3, F::none},
    {"BMI2", IS_DEFINED(__BMI2__), 7, 0, F::ebx, 8, F::none},
    {"ADX", IS_DEFINED(__ADX__), 7, 0, F::ebx, 19, F::none},
    {"GFNI", IS_DEFINED(__GFNI__), 7, 0, F::ecx, 8, F::none},
    {"AVX512F", IS_DEFINED(__AVX512F__), 7, 0, F::ebx, 16, F::avx512},
    {"AVX512DQ", IS_DEFINED(__AVX512DQ__), 7, 0, F::ebx, 17, F::avx512},
    {"AVX512IFMA", IS_DEFINED(__AVX512IFMA__), 7, 0, F::ebx, 21, F::avx512},
    {"AVX512CD", IS_DEFINED(__AVX512CD__), 7, 0, F::ebx, 28, F::avx512},
    {"AVX512BW", IS_DEFINED(__AVX512BW__), 7, 0, F::ebx, 30, F::avx512},
    {"AVX512VL", IS_DEFINED(__AVX512VL__), 7, 0, F::ebx, 31, F::avx512},
    {"AVX512VBMI", IS_DEFINED(__AVX512VBMI__), 7, 0, F::ecx, 1, F::avx512},
    {"AVX512VBMI2", IS_DEFINED(__AVX512VBMI2__), 7, 0, F::ecx, 6, F::avx512},
    {"AVX512VNNI", IS_DEFINED(__AVX512VNNI__), 7, 0, F::ecx, 11, F::avx512},
    {"AVX512BITALG", IS_DEFINED(__AVX512BITALG__), 7, 0, F::ecx, 12, F::avx512},
    {"AVX512VPOPCNTDQ", IS_DEFINED(__AVX512VPOPCNTDQ__), 7, 0, F::ecx, 14, F::avx512},
    {"AVX512FP16", IS_DEFINED(__AVX512FP16__), 7, 0, F::edx, 23, F::avx512},
    {"AVXVNNI", IS_DEFINED(__AVXVNNI__), 7, 1, F::eax, 4, F::avx},
    {"AVX512BF16", IS_DEFINED(__AVX512BF16__), 7, 1, F::eax, 5, F::avx512},
    {"LZCNT", IS_DEFINED(__LZCNT__), 0x80000001, 0, F::ecx, 5, F::none},
    {"SSE4A", IS_DEFINED(__SSE4A__), 0x80000001, 0, F::ecx, 6, F::none},
    {"XOP", IS_DEFINED(__XOP__), 0x80000001, 0, F::ecx, 11, F::avx},
    {"FMA4", IS_DEFINED(__FMA4__), 0x80000001, 0, F::ecx, 16, F::avx},
    {"TBM", IS_DEFINED(__TBM__), 0x80000001, 0, F::ecx, 21, F::none},
};
constexpr int count = sizeof(rows) / sizeof(rows[0]);
#else
constexpr const CpuFeature* rows = nullptr;  // elsewhere nothing is checked: -march=native binaries stay at home
constexpr int count = 0;
#endif

}  // namespace

extern constinit const CpuFeatures cpu_features{rows, rows + count};

}  // namespace tapedeck
