// oneDNN's matmul primitive, which multiplies bf16 matrices where the processor can, against Eigen. Its f32 form speaks
// to oneDNN in the same words, so that they are tested on every processor.
#include <algorithm>
#include <cmath>
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

std::vector<float> absolute(std::vector<float> values) {
  for (float& x : values) x = std::abs(x);
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
            std::vector<float> c = numbers<float>(m * ldc, 3);
            if (beta == 0) std::fill(c.begin(), c.end(), NAN);  // which is not read
            std::vector<float> expected = c, sizes = absolute(c);
            gemm_onednn_matmul(GemmPart<float, In>{transpose_a, transpose_b, m, n, k, alpha, a.data(), lda, b.data(),
                                                   ldb, beta, c.data(), ldc});
            gemm_eigen(GemmPart<float>{transpose_a, transpose_b, m, n, k, alpha, wide_a.data(), lda, wide_b.data(), ldb,
                                       beta, expected.data(), ldc});
            // A sum of k + 1 terms, in whichever order, is off by at most k + 2 roundings of the sum of their sizes.
            const auto sizes_a = absolute(wide_a), sizes_b = absolute(wide_b);
            gemm_eigen(GemmPart<float>{transpose_a, transpose_b, m, n, k, std::abs(alpha), sizes_a.data(), lda,
                                       sizes_b.data(), ldb, beta, sizes.data(), ldc});
            const float roundings = 2 * static_cast<float>(k + 2) * 0x1p-24f;
            for (int64_t i = 0; i < m; ++i)
              for (int64_t j = 0; j < ldc; ++j) {
                const auto at = static_cast<size_t>(i * ldc + j);
                if (j < n)
                  CHECK(std::abs(c[at] - expected[at]) <= roundings * sizes[at]);
                else  // the gap behind each row is left alone
                  CHECK((beta == 0 ? std::isnan(c[at]) : c[at] == expected[at]));
              }
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
