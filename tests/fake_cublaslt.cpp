#if __has_include(<cublasLt.h>)
#include "tests/fake_cublaslt.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "engine/half.h"

namespace tapedeck::test {
namespace {

constexpr cublasStatus_t ok = CUBLAS_STATUS_SUCCESS, invalid = CUBLAS_STATUS_INVALID_VALUE;

// A descriptor is its attributes: number -> value, of exactly the size that the documentation gives.
struct Attributes {
  std::map<int, size_t> sizes;
  std::map<int, std::vector<char>> values;
  cublasStatus_t set(int attribute, const void* value, size_t size) {
    const auto known = sizes.find(attribute);
    if (known == sizes.end() || known->second != size || !value) return invalid;
    const char* const bytes = static_cast<const char*>(value);
    values[attribute].assign(bytes, bytes + size);
    return ok;
  }
  template <class T>
  T get(int attribute, T otherwise) const {
    const auto found = values.find(attribute);
    if (found == values.end()) return otherwise;
    T value;
    std::memcpy(&value, found->second.data(), sizeof value);
    return value;
  }
};

struct Operation : Attributes {
  cublasComputeType_t compute;
  cudaDataType_t scale;
};
struct Layout : Attributes {
  cudaDataType_t type;
  int64_t rows, cols, ld;
  int32_t batch() const { return get<int32_t>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1); }
  int64_t stride() const { return get<int64_t>(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 0); }
};

const Operation& as(cublasLtMatmulDesc_t p) { return *reinterpret_cast<Operation*>(p); }
const Layout& as(cublasLtMatrixLayout_t p) { return *reinterpret_cast<Layout*>(p); }

size_t bytes_of(cudaDataType_t type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }
double load(const void* p, cudaDataType_t type, int64_t i) {
  switch (type) {
    case CUDA_R_64F: return static_cast<const double*>(p)[i];
    case CUDA_R_16F: return static_cast<double>(static_cast<const Half*>(p)[i]);
    case CUDA_R_16BF: return static_cast<double>(static_cast<const Bfloat16*>(p)[i]);
    default: return static_cast<double>(static_cast<const float*>(p)[i]);
  }
}
void store(void* p, cudaDataType_t type, int64_t i, double value) {
  switch (type) {
    case CUDA_R_64F: static_cast<double*>(p)[i] = value; break;
    case CUDA_R_16F: static_cast<Half*>(p)[i] = Half(value); break;
    case CUDA_R_16BF: static_cast<Bfloat16*>(p)[i] = Bfloat16(value); break;
    default: static_cast<float*>(p)[i] = static_cast<float>(value);
  }
}

bool types_fit(const Operation& o, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  if (a.type != b.type || c.type != d.type) return false;
  if (o.compute == CUBLAS_COMPUTE_64F) return o.scale == CUDA_R_64F && a.type == CUDA_R_64F && c.type == CUDA_R_64F;
  if (o.scale != CUDA_R_32F) return false;
  if (o.compute == CUBLAS_COMPUTE_32F_FAST_TF32) return a.type == CUDA_R_32F && c.type == CUDA_R_32F;
  if (o.compute != CUBLAS_COMPUTE_32F) return false;
  const bool half = a.type == CUDA_R_16F || a.type == CUDA_R_16BF;
  return (half && (c.type == a.type || c.type == CUDA_R_32F)) || (a.type == CUDA_R_32F && c.type == CUDA_R_32F);
}

struct Shape {
  int64_t m, n, k;
  bool ta, tb;
};
bool shapes_fit(const Operation& o, const Layout& a, const Layout& b, const Layout& c, const Layout& d, Shape& s) {
  s.ta = o.get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N) == CUBLAS_OP_T;
  s.tb = o.get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N) == CUBLAS_OP_T;
  s.m = d.rows, s.n = d.cols, s.k = s.ta ? a.rows : a.cols;
  for (const Layout* l : {&a, &b, &c, &d})
    if (l->ld < l->rows || l->rows < 1 || l->cols < 1 || l->batch() != d.batch()) return false;
  return (s.ta ? a.cols : a.rows) == s.m && (s.tb ? b.cols : b.rows) == s.k && (s.tb ? b.rows : b.cols) == s.n &&
         c.rows == s.m && c.cols == s.n;
}

bool epilogue_fits(const Operation& o, const Layout& d) {
  const int epilogue = o.get<uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
  const bool wants_bias = epilogue & (CUBLASLT_EPILOGUE_BIAS | 16), wants_aux = epilogue & 128;
  const bool is_relu = epilogue & (CUBLASLT_EPILOGUE_RELU | 8);
  if (wants_bias && !o.get<void*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr)) return false;
  const int64_t ld = o.get<int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 0);
  return !wants_aux || (o.get<void*>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, nullptr) && ld >= d.rows &&
                        ld % (is_relu ? 128 : 8) == 0);
}

// Bits run from a byte's highest down, unlike in our own masks: nobody may rely on where a bit lies.
bool mask_bit(const void* mask, int64_t at) { return static_cast<const uint8_t*>(mask)[at / 8] >> (7 - at % 8) & 1; }
void set_mask_bit(void* mask, int64_t at, bool on) {
  uint8_t& byte = static_cast<uint8_t*>(mask)[at / 8];
  byte = static_cast<uint8_t>((byte & ~(128u >> at % 8)) | (on ? 128u >> at % 8 : 0));
}

double gelu(double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double gelu_slope(double x) {
  const double t = std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

double after(const Operation& o, const Layout& d, int64_t i, int64_t j, double value) {
  const int epilogue = o.get<uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
  void* const aux = o.get<void*>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, nullptr);
  const int64_t at = i + j * o.get<int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 0);
  if (epilogue & CUBLASLT_EPILOGUE_BIAS)
    value += load(o.get<void*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr), d.type, i);
  switch (epilogue) {
    case CUBLASLT_EPILOGUE_RELU_AUX_BIAS: set_mask_bit(aux, at, value > 0); [[fallthrough]];
    case CUBLASLT_EPILOGUE_RELU_BIAS: return value < 0 ? 0 : value;
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS: store(aux, d.type, at, value); [[fallthrough]];
    case CUBLASLT_EPILOGUE_GELU_BIAS: return gelu(value);
    case CUBLASLT_EPILOGUE_DRELU:
    case CUBLASLT_EPILOGUE_DRELU_BGRAD: return mask_bit(aux, at) ? value : 0;
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_DGELU_BGRAD: return value * gelu_slope(load(aux, d.type, at));
    default: return value;
  }
}

cublasStatus_t multiply(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha, const void* a,
                        cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                        const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                        cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void*, size_t,
                        cudaStream_t) {
  FakeCublasLt& fake = fake_cublaslt();
  const Operation& o = as(operation);
  const Layout &la = as(a_layout), &lb = as(b_layout), &lc = as(c_layout), &ld = as(d_layout);
  Shape s{};
  if (!types_fit(o, la, lb, lc, ld) || !shapes_fit(o, la, lb, lc, ld, s) || !epilogue_fits(o, ld) || !algorithm)
    return invalid;
  if (fake.fails_with != ok) return fake.fails_with;
  if (fake.unknown_algorithms.contains(static_cast<int>(algorithm->data[0]))) return CUBLAS_STATUS_NOT_SUPPORTED;
  ++fake.products;
  fake.last_algorithm = static_cast<int>(algorithm->data[0]);
  const int epilogue = o.get<uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
  fake.last_epilogue = epilogue, fake.last_compute = o.compute;
  const double scale = load(alpha, o.scale, 0), keep = load(beta, o.scale, 0);
  for (int64_t p = 0; p < ld.batch(); ++p)
    for (int64_t i = 0; i < s.m; ++i) {
      double row = 0;
      for (int64_t j = 0; j < s.n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < s.k; ++l)
          sum += load(a, la.type, p * la.stride() + (s.ta ? l + i * la.ld : i + l * la.ld)) *
                 load(b, lb.type, p * lb.stride() + (s.tb ? j + l * lb.ld : l + j * lb.ld));
        const double old = keep == 0 ? 0 : keep * load(c, lc.type, p * lc.stride() + i + j * lc.ld);
        const double value = after(o, ld, i, j, scale * sum + old);
        store(d, ld.type, p * ld.stride() + i + j * ld.ld, value);
        row += value;
      }
      if (epilogue & 16) store(o.get<void*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr), ld.type, i, row);
    }
  return ok;
}

cublasStatus_t find_algorithms(cublasLtHandle_t, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                               cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                               cublasLtMatmulPreference_t preference, int most,
                               cublasLtMatmulHeuristicResult_t* results, int* count) {
  FakeCublasLt& fake = fake_cublaslt();
  ++fake.heuristics;
  const Attributes& wish = *reinterpret_cast<Attributes*>(preference);
  fake.asked_workspace = wish.get<uint64_t>(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 0);
  fake.asked_reductions = wish.get<uint32_t>(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, ~0u);
  fake.asked_alignment_a = wish.get<uint32_t>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 256);
  fake.asked_alignment_b = wish.get<uint32_t>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 256);
  Shape s{};
  const Operation& o = as(operation);
  if (most < 1 || !types_fit(o, as(a), as(b), as(c), as(d)) || !shapes_fit(o, as(a), as(b), as(c), as(d), s) ||
      !epilogue_fits(o, as(d)))
    return invalid;
  const int epilogue = o.get<uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
  *count = 0;
  if (fake.unknown_epilogues.contains(epilogue) || fake.offers == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (; *count < std::min(most, fake.offers); ++*count) {
    results[*count] = {};
    results[*count].algo.data[0] = static_cast<uint64_t>(*count);
    results[*count].algo.data[7] = 0xfeedface;
  }
  return ok;
}

cublasStatus_t check_algorithm(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                               cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t* algorithm,
                               cublasLtMatmulHeuristicResult_t*) {
  FakeCublasLt& fake = fake_cublaslt();
  ++fake.checks;
  if (algorithm->data[7] != 0xfeedface) return invalid;
  return fake.unknown_algorithms.contains(static_cast<int>(algorithm->data[0])) ? CUBLAS_STATUS_NOT_SUPPORTED : ok;
}

template <class T, class Handle>
cublasStatus_t give(Handle* out, T object) {
  ++fake_cublaslt().alive;
  *out = reinterpret_cast<Handle>(new T(std::move(object)));
  return ok;
}
template <class T, class Handle>
cublasStatus_t take(Handle handle) {
  --fake_cublaslt().alive;
  delete reinterpret_cast<T*>(handle);
  return ok;
}

}  // namespace

FakeCublasLt& fake_cublaslt() {
  static FakeCublasLt fake;
  return fake;
}

const CublasLtFunctions& fake_cublaslt_functions() {
  static const CublasLtFunctions functions = {
      [](cublasLtHandle_t* handle) { return give(handle, int{0}); },
      [](cublasLtHandle_t handle) { return take<int>(handle); },
      []() -> size_t { return 130000; },
      [](cublasStatus_t status) { return status == invalid ? "CUBLAS_STATUS_INVALID_VALUE" : "CUBLAS_STATUS_OTHER"; },
      [](cublasLtMatmulDesc_t* out, cublasComputeType_t compute, cudaDataType_t scale) {
        return give(out, Operation{{{{CUBLASLT_MATMUL_DESC_TRANSA, 4},
                                     {CUBLASLT_MATMUL_DESC_TRANSB, 4},
                                     {CUBLASLT_MATMUL_DESC_EPILOGUE, 4},
                                     {CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8},
                                     {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, 8},
                                     {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 8}},
                                    {}},
                                   compute,
                                   scale});
      },
      [](cublasLtMatmulDesc_t p) { return take<Operation>(p); },
      [](cublasLtMatmulDesc_t p, cublasLtMatmulDescAttributes_t attribute, const void* value, size_t size) {
        return reinterpret_cast<Operation*>(p)->set(attribute, value, size);
      },
      [](cublasLtMatrixLayout_t* out, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld) {
        return give(
            out,
            Layout{{{{CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 4}, {CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 8}}, {}},
                   type,
                   static_cast<int64_t>(rows),
                   static_cast<int64_t>(cols),
                   ld});
      },
      [](cublasLtMatrixLayout_t p) { return take<Layout>(p); },
      [](cublasLtMatrixLayout_t p, cublasLtMatrixLayoutAttribute_t attribute, const void* value, size_t size) {
        return reinterpret_cast<Layout*>(p)->set(attribute, value, size);
      },
      [](cublasLtMatmulPreference_t* out) {
        return give(out, Attributes{{{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 8},
                                     {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 4},
                                     {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 4},
                                     {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 4},
                                     {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 4},
                                     {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 4}},
                                    {}});
      },
      [](cublasLtMatmulPreference_t p) { return take<Attributes>(p); },
      [](cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t attribute, const void* value, size_t size) {
        return reinterpret_cast<Attributes*>(p)->set(attribute, value, size);
      },
      find_algorithms,
      check_algorithm,
      multiply};
  return functions;
}

}  // namespace tapedeck::test
#endif
