// f32 products by oneDNN's sgemm, on the calling thread alone: gemm_cpu.cpp splits the work among threads itself, so
// that the epilogue of a part runs while it is in that thread's cache.
#include <oneapi/dnnl/dnnl.h>

#include "engine/check.h"
#include "engine/gemm_part.h"

extern "C" void omp_set_num_threads(int) __attribute__((weak));  // of the OpenMP runtime that oneDNN brings along

namespace tapedeck {

void onednn_on_this_thread() {
  if (omp_set_num_threads) omp_set_num_threads(1);
}

void gemm_onednn(const GemmPart<float>& p) {
  onednn_on_this_thread();
  const dnnl_status_t status = dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', p.m, p.n, p.k, p.alpha,
                                          p.a, p.lda, p.b, p.ldb, p.beta, p.c, p.ldc);
  CHECK(status == dnnl_success, "gemm: oneDNN refused a product of {}x{}x{} with status {}", p.m, p.n, p.k,
        static_cast<int>(status));
}

}  // namespace tapedeck
