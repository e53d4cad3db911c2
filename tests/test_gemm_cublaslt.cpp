// Products through our cuBLASLt code, on a double of the library (fake_cublaslt.h): the mapping against plain loops,
// the choice of algorithms, and the file that remembers it.
#if !__has_include(<cublasLt.h>)
#include <doctest/doctest.h>
TEST_CASE("cublaslt: products, choices and errors on a double of the library") { MESSAGE("skipped: no cublasLt.h"); }
#else
#include <array>

#include "tests/cublaslt_setting.h"

namespace tapedeck {
namespace {

using test::all_epilogues;
using test::Small;
using test::workspace_bytes;
using Setting = test::CublasLtSetting;

TEST_CASE("cublaslt: every transpose, type, epilogue and ragged size equals the plain loops") {
  const test::CheckedCpu checked;
  Setting s;
  for (Epilogue epilogue : all_epilogues)
    for (int flags = 0; flags < 4; ++flags)
      for (const auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {7, 33, 129}, {33, 7, 1}, {5, 136, 9}, {7, 8, 0}}) {
        Gemm g{.m = m, .n = n, .k = k, .transpose_a = (flags & 1) != 0, .transpose_b = (flags & 2) != 0};
        g.epilogue = epilogue, g.alpha = 0.5;
        s.check<float>(g);
        s.check<double>(g);
        s.check<Half>(g);
        s.check<Bfloat16>(g);
        s.check<Bfloat16, float>(g);
      }
}

TEST_CASE("cublaslt: beta and batches, also where the choice is timed on the C that counts") {
  // Fault: algorithms are timed on C itself, and with beta 1 the product is added once for each of them.
  const test::CheckedCpu checked;
  Setting s;
  for (double beta : {0.0, 1.0, 0.5})
    for (Epilogue epilogue : {Epilogue::none, Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_gelu}) {
      Gemm g{.m = 7, .n = 16, .k = 9, .beta = beta, .epilogue = epilogue};
      s.check<float>(g);
      s.check<Half, float>(g);
      g.batch = 3, g.stride_a = 70, g.stride_b = 0, g.stride_c = 120;
      s.check<float>(g);
      s.check<double>(g);
      g.transpose_a = g.transpose_b = true;
      s.check<Bfloat16>(g);
    }
  CHECK(s.timed > 0);
}

TEST_CASE("cublaslt: epilogues are fused into the product where the library has them") {
  struct Case {
    Epilogue epilogue;
    bool aux, sums;
    int expected;
  };
  for (const Case& c : {Case{Epilogue::none, false, false, CUBLASLT_EPILOGUE_DEFAULT},
                        Case{Epilogue::bias, false, false, CUBLASLT_EPILOGUE_BIAS},
                        Case{Epilogue::bias_relu, false, false, CUBLASLT_EPILOGUE_RELU_BIAS},
                        Case{Epilogue::bias_relu, true, false, CUBLASLT_EPILOGUE_RELU_AUX_BIAS},
                        Case{Epilogue::bias_gelu, false, false, CUBLASLT_EPILOGUE_GELU_BIAS},
                        Case{Epilogue::bias_gelu, true, false, CUBLASLT_EPILOGUE_GELU_AUX_BIAS},
                        Case{Epilogue::dgelu, true, false, CUBLASLT_EPILOGUE_DGELU},
                        Case{Epilogue::dgelu, true, true, CUBLASLT_EPILOGUE_DGELU_BGRAD}}) {
    Setting s;
    Small small;
    std::vector<float> aux(64, 1), sums(64);
    small.g.n = 8, small.g.epilogue = c.epilogue;
    if (c.aux) small.g.aux = aux.data();
    if (c.sums) small.g.bias_gradient = sums.data();
    CHECK(s.run(small.g));
    CHECK_EQ(s.fake.last_epilogue, c.expected);
    if (!c.aux || c.epilogue == Epilogue::bias_relu) continue;
    small.g.n = 7;  // rows of gelu's aux must be a multiple of 8
    CHECK_FALSE(s.run(small.g));
  }
}

TEST_CASE("cublaslt: relu's mask is read by the side that wrote it") {
  // Fault: a mask in cuBLASLt's layout, which it does not state, is read by a kernel of ours in another.
  Setting s;
  Small small;
  std::vector<float> sums(64);
  std::vector<char> mask(relu_mask_bytes(2, 3));
  Gemm forward = small.g, backward = small.g;
  forward.epilogue = Epilogue::bias_relu, forward.aux = mask.data();
  backward.epilogue = Epilogue::drelu, backward.aux = mask.data(), backward.bias_gradient = sums.data();
  CHECK(s.run(forward));
  CHECK(s.run(backward));
  CHECK_EQ(s.fake.last_epilogue, CUBLASLT_EPILOGUE_DRELU_BGRAD);

  s.fake.unknown_epilogues = {CUBLASLT_EPILOGUE_DRELU_BGRAD};  // then the product takes the mask, and we sum
  s.restart(), std::filesystem::remove(s.file()), s.restart();
  CHECK(s.run(forward));
  s.whole()(backward);
  CHECK_EQ(s.fake.last_epilogue, CUBLASLT_EPILOGUE_DRELU);
  CHECK_EQ(sums[0], 8);

  s.fake.unknown_epilogues = {CUBLASLT_EPILOGUE_DRELU_BGRAD, CUBLASLT_EPILOGUE_DRELU};
  s.restart(), std::filesystem::remove(s.file()), s.restart();
  CHECK(s.run(forward));
  CHECK_THROWS_WITH_AS(s.whole()(backward),
                       doctest::Contains("wrote a mask of relu but cannot read it in 2x3x4 of f32"), Error);
  const std::vector<float> y = {1, 0, 2, 0, 0, 3};
  backward.output = y.data();  // tells as much
  s.whole()(backward);
  for (size_t i = 0; i < y.size(); ++i) CHECK_EQ(static_cast<const float*>(backward.c)[i], y[i] > 0 ? 4 : 0);
  CHECK_EQ(std::vector<float>(sums.begin(), sums.begin() + 3), std::vector<float>{4, 0, 8});
  backward.output = nullptr;

  s.fake.unknown_epilogues = {CUBLASLT_EPILOGUE_RELU_AUX_BIAS};
  s.restart(), std::filesystem::remove(s.file()), s.restart();
  s.whole()(forward);  // by a kernel of ours …
  s.whole()(backward);
  CHECK_EQ(s.fake.last_epilogue, CUBLASLT_EPILOGUE_DEFAULT);  // … and so is this
  CHECK_EQ(sums[0], 8);
}

TEST_CASE("cublaslt: what the heuristics do not offer is refused, without a trace, and not asked for again") {
  Setting s;
  Small small;
  s.fake.unknown_epilogues = {CUBLASLT_EPILOGUE_BIAS};
  small.g.epilogue = Epilogue::bias;
  CHECK_FALSE(s.run(small.g));
  CHECK_FALSE(s.run(small.g));
  CHECK_EQ(s.fake.heuristics, 1);
  CHECK_EQ(s.fake.products, 0);
  CHECK(small.c == std::vector<float>(64, -7));
  for (Epilogue epilogue : all_epilogues) {
    s.fake.unknown_epilogues.clear();
    for (int e = 2; e < 1024; ++e) s.fake.unknown_epilogues.insert(e);  // all but a plain product
    s.check<float>({.m = 5, .n = 16, .k = 7, .epilogue = epilogue});
    s.check<Half>({.m = 5, .n = 16, .k = 7, .epilogue = epilogue});
  }
}

TEST_CASE("cublaslt: what is asked of the library") {
  Setting s;
  Small small;
  small.g.a = small.ones.data() + 1, small.g.m = 1;  // the library's B is our A
  CHECK(s.run(small.g));
  CHECK_EQ(s.fake.asked_workspace, workspace_bytes);
  CHECK_EQ(s.fake.asked_reductions, CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  CHECK_EQ(s.fake.asked_alignment_b, 4);
  CHECK(s.fake.asked_alignment_a >= 8);
  CHECK_EQ(s.fake.last_compute, CUBLAS_COMPUTE_32F);
  const int before = s.fake.heuristics;
  set_tf32(true);
  CHECK(s.run(small.g));
  CHECK_EQ(s.fake.last_compute, CUBLAS_COMPUTE_32F_FAST_TF32);
  CHECK_EQ(s.fake.heuristics, before + 1);  // another product, with a choice of its own
  s.check<double>({.m = 3, .n = 4, .k = 5});
  CHECK_EQ(s.fake.last_compute, CUBLAS_COMPUTE_64F);
  s.check<Half>({.m = 3, .n = 4, .k = 5});
  CHECK_EQ(s.fake.last_compute, CUBLAS_COMPUTE_32F);
  set_tf32(false);
  CHECK_EQ(CublasLt::workspace_bytes(9), size_t{32} << 20);
  CHECK_EQ(CublasLt::workspace_bytes(8), size_t{4} << 20);
}

TEST_CASE("cublaslt: a failure names the call, the status and the product") {
  Setting s;
  Small small;
  s.fake.fails_with = CUBLAS_STATUS_INVALID_VALUE;
  small.g.epilogue = Epilogue::bias_gelu;
  CHECK_THROWS_WITH_AS(
      s.run(small.g),
      doctest::Contains(
          "cublasLtMatmul failed with CUBLAS_STATUS_INVALID_VALUE for the product 2x3x4 of f32, bias_gelu"),
      Error);
  small.g.k = 2, small.g.b = nullptr;
  small.g.m = 0;  // no caller does this: the layout is refused, which for a plain product is our mistake
  small.g.epilogue = Epilogue::none;
  CHECK_THROWS_WITH_AS(s.run(small.g), doctest::Contains("cublasLtMatmulAlgoGetHeuristic failed"), Error);
}

TEST_CASE("cublaslt: the real library takes our descriptions") {
  const CublasLtFunctions* f = nullptr;
  try {
    f = &cublaslt_functions();
  } catch (const Error& e) {
    MESSAGE("skipped: " << e.what());
    return;
  }
  CHECK(f->version() >= 120000);
  Small small;
  std::vector<float> aux(64), sums(64);
  for (Epilogue epilogue : all_epilogues)
    for (int64_t batch : {1, 3})
      for (DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
        Gemm g = small.g;
        g.n = 8, g.epilogue = epilogue, g.batch = batch, g.dtype = type;
        if (batch == 1 && epilogue != Epilogue::none && epilogue != Epilogue::bias) g.aux = aux.data();
        if (epilogue == Epilogue::dgelu) g.bias_gradient = sums.data();
        CHECK_NOTHROW(CublasLtProblem(*f, g, workspace_bytes));
      }
}

}  // namespace
}  // namespace tapedeck
#endif
