#include "engine/cuda/cublaslt_functions.h"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <vector>

#include "engine/check.h"

namespace tapedeck {
namespace {

// Where the library is when the loader does not find it by name: the toolkit's folder, and where Python's packages
// nvidia-cublas put it.
std::vector<std::string> files_to_try() {
  std::vector<std::string> patterns = {"/usr/local/cuda/lib64/libcublasLt.so.1[23]"};
  const auto add_python = [&](const std::string& prefix) {
    patterns.push_back(prefix + "/lib/python3*/*-packages/nvidia/*/lib/libcublasLt.so.1[23]");
  };
  if (const char* environment = std::getenv("VIRTUAL_ENV")) add_python(environment);
  if (const char* home = std::getenv("HOME")) add_python(std::string(home) + "/.local");
  add_python("/usr/local");
  add_python("/usr");
  std::vector<std::string> files;
  for (const std::string& pattern : patterns) {
    glob_t found{};
    if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
      files.insert(files.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
    globfree(&found);
  }
  return files;
}

void* open_library() {
  for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"})
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  const char* const message = dlerror();
  const std::string reason = message ? message : "unknown";
  for (const std::string& file : files_to_try())
    if (void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  CHECK(false, "cuda: cannot load cuBLASLt ({}): install it, or name its folder in LD_LIBRARY_PATH", reason);
  return nullptr;
}

CublasLtFunctions load() {
  void* const library = open_library();
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
