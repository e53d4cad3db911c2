// Products of bf16 matrices into f32 by oneDNN's matmul primitive, which uses the processor's bf16 instructions, on the
// calling thread alone (see gemm_onednn.cpp). oneDNN keeps what it makes of a shape, so that asking again is cheap.
#include <oneapi/dnnl/dnnl.hpp>

#include "engine/check.h"
#include "engine/gemm_part.h"
#include "engine/half.h"

namespace tapedeck {
namespace {

template <class In>
constexpr auto type_of = sizeof(In) == 2 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;

const dnnl::engine& processor() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

}  // namespace

// oneDNN is asked, not the processor: ONEDNN_MAX_CPU_ISA=AVX2 tells it to leave such instructions alone, and then it
// has no product of bf16.
bool bf16_is_native() {
#if defined(__x86_64__)
  const auto uses = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto wanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  return (uses & wanted) == wanted;  // a set of features, each with those that it is built on
#else
  return false;
#endif
}

template <class In>
void gemm_onednn_matmul(const GemmPart<float, In>& p) {
  using dnnl::memory;
  onednn_on_this_thread();
  thread_local dnnl::stream stream(processor());
  const auto strides = [](bool transposed, int64_t ld) {
    return transposed ? memory::dims{1, ld} : memory::dims{ld, 1};
  };
  try {
    const memory::desc a({p.m, p.k}, type_of<In>, strides(p.transpose_a, p.lda));
    const memory::desc b({p.k, p.n}, type_of<In>, strides(p.transpose_b, p.ldb));
    const memory::desc c({p.m, p.n}, memory::data_type::f32, memory::dims{p.ldc, 1});
    dnnl::primitive_attr attributes;
    if (p.alpha != 1) attributes.set_output_scales(0, {p.alpha});
    if (p.beta != 0) {
      dnnl::post_ops sum;
      sum.append_sum(p.beta);
      attributes.set_post_ops(sum);
    }
    const dnnl::matmul::primitive_desc made({a, b, c}, attributes, processor());
    dnnl::matmul(made).execute(stream, {{DNNL_ARG_SRC, {a, processor(), const_cast<In*>(p.a)}},
                                        {DNNL_ARG_WEIGHTS, {b, processor(), const_cast<In*>(p.b)}},
                                        {DNNL_ARG_DST, {c, processor(), p.c}}});
    stream.wait();
  } catch (const dnnl::error& error) {
    CHECK(false, "gemm: oneDNN refused a product of {}x{}x{} with status {}: {}", p.m, p.n, p.k,
          static_cast<int>(error.status), error.message);
  }
}
template void gemm_onednn_matmul(const GemmPart<float, float>&);  // for the tests, on any processor
template void gemm_onednn_matmul(const GemmPart<float, Bfloat16>&);

}  // namespace tapedeck
