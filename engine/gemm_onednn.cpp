// f32 products by oneDNN's sgemm, on the calling thread alone: backend_cpu.cpp splits the work among threads itself, so
// that the epilogue of a part runs while it is in that thread's cache.
#include <oneapi/dnnl/dnnl.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

#include "engine/check.h"
#include "engine/gemm_part.h"

namespace tapedeck {

void gemm_onednn(const GemmPart<float>& p) {
#if defined(_OPENMP)
  omp_set_num_threads(1);  // what a region of this thread gets that does not say how many: oneDNN's; ours all say it
#endif
  const dnnl_status_t status = dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', p.m, p.n, p.k, p.alpha,
                                          p.a, p.lda, p.b, p.ldb, p.beta, p.c, p.ldc);
  CHECK(status == dnnl_success, "gemm: oneDNN refused a product of {}x{}x{} with status {}", p.m, p.n, p.k,
        static_cast<int>(status));
}

}  // namespace tapedeck
