#include "engine/cuda/cublaslt_functions.h"

#include <dlfcn.h>

#include "engine/check.h"
#include "engine/cuda/find_library.h"

namespace tapedeck {
namespace {

CublasLtFunctions load() {
  std::string reason;
  void* const library =
      cuda::open_library({"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}, "libcublasLt.so.1[23]", reason);
  CHECK(library, "cuda: cannot load cuBLASLt ({}): install it, or name its folder in LD_LIBRARY_PATH", reason);
  const auto get = [library](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    CHECK(function, "cuda: this cuBLASLt has no function {}: install version 12 or 13", name);
  };
  CublasLtFunctions f{};
  get(f.create, "cublasLtCreate");
  get(f.destroy, "cublasLtDestroy");
  get(f.version, "cublasLtGetVersion");
  get(f.status_name, "cublasLtGetStatusName");
  get(f.operation_create, "cublasLtMatmulDescCreate");
  get(f.operation_destroy, "cublasLtMatmulDescDestroy");
  get(f.operation_set, "cublasLtMatmulDescSetAttribute");
  get(f.layout_create, "cublasLtMatrixLayoutCreate");
  get(f.layout_destroy, "cublasLtMatrixLayoutDestroy");
  get(f.layout_set, "cublasLtMatrixLayoutSetAttribute");
  get(f.preference_create, "cublasLtMatmulPreferenceCreate");
  get(f.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  get(f.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  get(f.find_algorithms, "cublasLtMatmulAlgoGetHeuristic");
  get(f.check_algorithm, "cublasLtMatmulAlgoCheck");
  get(f.multiply, "cublasLtMatmul");
  return f;
}

}  // namespace

const CublasLtFunctions& cublaslt_functions() {
  static const CublasLtFunctions functions = load();
  return functions;
}

std::string in_words(const Gemm& g) {
  return text("{}x{}x{} of {}{}, {}{}", g.m, g.n, g.k, name(g.dtype),
              g.c_dtype ? text(" into {}", name(*g.c_dtype)) : "", name(g.epilogue),
              g.batch > 1 ? text(", batch {}", g.batch) : "");
}

void check_cublaslt(const CublasLtFunctions& functions, cublasStatus_t status, const char* call, const Gemm& g) {
  CHECK(status == CUBLAS_STATUS_SUCCESS, "gemm: {} failed with {} for the product {}", call,
        functions.status_name(status), in_words(g));
}

}  // namespace tapedeck
