#include "engine/gemm.h"

#include <atomic>

#include "engine/backend.h"
#include "engine/check.h"
#include "engine/gemm_epilogue.h"
#include "engine/trace.h"

namespace tapedeck {
namespace {

std::atomic<bool> tf32_allowed{false};

void check_types(const Gemm& g) {
  CHECK(is_floating(g.dtype), "gemm: takes f64, f32, f16 or bf16, got {}: cast first", name(g.dtype));
  const DType c = g.type_of_c();
  CHECK(c == g.dtype || (c == DType::f32 && g.dtype != DType::f64),
        "gemm: C is {}, but products of {} are stored as {}{}", name(c), name(g.dtype), name(g.dtype),
        g.dtype == DType::f64 || g.dtype == DType::f32 ? "" : " or f32");
}

void check_epilogue(const Gemm& g) {
  const bool adds_bias =
      g.epilogue == Epilogue::bias || g.epilogue == Epilogue::bias_relu || g.epilogue == Epilogue::bias_gelu;
  CHECK(!adds_bias || g.bias != nullptr, "gemm: the epilogue {} needs a bias", name(g.epilogue));
  CHECK(!g.is_backward() || g.aux != nullptr, "gemm: the epilogue {} needs the aux that bias_{} left", name(g.epilogue),
        g.epilogue == Epilogue::drelu ? "relu" : "gelu");
  CHECK(g.aux == nullptr || g.is_backward() || (adds_bias && g.epilogue != Epilogue::bias),
        "gemm: aux belongs to bias_relu, bias_gelu, drelu or dgelu, got {}", name(g.epilogue));
  CHECK(g.aux == nullptr || g.batch == 1, "gemm: aux holds what belongs to one product, got a batch of {}", g.batch);
  CHECK(g.output == nullptr || g.epilogue == Epilogue::drelu, "gemm: an output of relu goes with drelu, got {}",
        name(g.epilogue));
  CHECK(g.bias_gradient == nullptr || g.is_backward(), "gemm: a bias gradient comes with drelu or dgelu, got {}",
        name(g.epilogue));
  CHECK(!g.is_backward() || g.beta == 0, "gemm: {} writes C, so beta must be 0, got {}", name(g.epilogue), g.beta);
}

}  // namespace

const char* name(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none: return "none";
    case Epilogue::bias: return "bias";
    case Epilogue::bias_relu: return "bias_relu";
    case Epilogue::bias_gelu: return "bias_gelu";
    case Epilogue::drelu: return "drelu";
    case Epilogue::dgelu: return "dgelu";
  }
  return "?";
}

void gemm(Device device, const Gemm& g) {
  check_types(g);
  CHECK(g.m >= 0 && g.n >= 0 && g.k >= 0 && g.batch >= 0, "gemm: sizes cannot be negative, got {}x{}x{}", g.m, g.n,
        g.k);
  check_epilogue(g);
  if (g.m == 0 && g.bias_gradient) sum_bias_gradient(device, g);  // sums of nothing, which are 0
  if (g.m == 0 || g.n == 0 || g.batch == 0) return;
  const TracedProduct traced(g);
  backend(device).gemm(g);
}

void set_tf32(bool allowed) { tf32_allowed = allowed; }
bool tf32() { return tf32_allowed; }

}  // namespace tapedeck
