// f64 products, and f32 ones in builds without oneDNN, by Eigen on the calling thread alone. In its own file since
// Eigen takes seconds to compile.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // g++ 12's own AVX-512 intrinsics, hundreds of times
#pragma GCC diagnostic ignored "-Wuninitialized"        // the same, with sanitizers
#endif
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Core>

#include "engine/gemm_part.h"

namespace tapedeck {

template <class T>
void gemm_eigen(const GemmPart<T>& p) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Map = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;
  const Map a(p.a, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, Eigen::OuterStride<>(p.lda));
  const Map b(p.b, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, Eigen::OuterStride<>(p.ldb));
  Eigen::Map<Matrix, 0, Eigen::OuterStride<>> c(p.c, p.m, p.n, Eigen::OuterStride<>(p.ldc));
  if (p.beta == 0)
    c.setZero();
  else if (p.beta != 1)
    c *= p.beta;
  if (p.transpose_a && p.transpose_b)
    c.noalias() += p.alpha * (a.transpose() * b.transpose());
  else if (p.transpose_a)
    c.noalias() += p.alpha * (a.transpose() * b);
  else if (p.transpose_b)
    c.noalias() += p.alpha * (a * b.transpose());
  else
    c.noalias() += p.alpha * (a * b);
}
template void gemm_eigen(const GemmPart<float>&);
template void gemm_eigen(const GemmPart<double>&);

}  // namespace tapedeck
