// oneDNN's matmul primitive, which multiplies bf16 matrices where the processor can, against Eigen. Its f32 form speaks
// to oneDNN in the same words, so that they are tested on every processor.
#include <random>
#include <vector>

#include "engine/gemm_devices.h"
#include "engine/gemm_part.h"
#include "engine/half.h"

#include <doctest/doctest.h>

namespace tapedeck {
namespace {

template <class In>
std::vector<In> numbers(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<In> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(In(float(Bfloat16(uniform(random)))));  // exact in both types
  return values;
}

template <class In>
void check_against_eigen() {
#if defined(TAPEDECK_HAVE_ONEDNN)
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      for (const int64_t size : {1, 7, 33})
        for (const float alpha : {1.0f, -0.5f})
          for (const float beta : {0.0f, 1.0f, 0.25f}) {
            const int64_t m = size, n = size + 3, k = 2 * size + 1, gap = 2;  // gap: rows longer than they need be
            const int64_t lda = (transpose_a ? m : k) + gap, ldb = (transpose_b ? k : n) + gap, ldc = n + gap;
            const auto a = numbers<In>(std::max(m, k) * lda, 1), b = numbers<In>(std::max(n, k) * ldb, 2);
            const std::vector<float> wide_a(a.begin(), a.end()), wide_b(b.begin(), b.end());
            std::vector<float> c = numbers<float>(m * ldc, 3), expected = c;
            gemm_onednn_matmul(GemmPart<float, In>{transpose_a, transpose_b, m, n, k, alpha, a.data(), lda, b.data(),
                                                   ldb, beta, c.data(), ldc});
            gemm_eigen(GemmPart<float>{transpose_a, transpose_b, m, n, k, alpha, wide_a.data(), lda, wide_b.data(), ldb,
                                       beta, expected.data(), ldc});
            for (size_t i = 0; i < c.size(); ++i) CHECK(c[i] == doctest::Approx(expected[i]).epsilon(1e-4));
          }
#else
  MESSAGE("skipped: a build without oneDNN");
#endif
}

}  // namespace

TEST_CASE("oneDNN's matmul is a gemm: transposes, leading dimensions, alpha and beta") { check_against_eigen<float>(); }

TEST_CASE("oneDNN's matmul of bf16 is one too") {
  if (bf16_products_are_fast())
    check_against_eigen<Bfloat16>();
  else
    MESSAGE("skipped: this processor has no bf16 instructions, or the build no oneDNN");
}

}  // namespace tapedeck
