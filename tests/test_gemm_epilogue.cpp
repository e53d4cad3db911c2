// gemm_by_library: what a library refuses is done in steps by kernels of our own, with the same result.
#include "engine/gemm_epilogue.h"

#include "tests/gemm_problem.h"

namespace tapedeck {
namespace {

using test::Problem;

// A library that multiplies as our own devices do, and knows some epilogues only. Counts what it did.
struct Library {
  Device memory;
  bool knows_bias_gradient, knows_epilogues;
  int did = 0;

  bool operator()(const Gemm& g) {
    if (g.k == 0) return false;
    if (g.epilogue != Epilogue::none && !knows_epilogues) return false;
    if (g.bias_gradient && !knows_bias_gradient) return false;
    ++did;
    gemm(memory, g);
    return true;
  }
};

template <class T, class TC>
void check(const Gemm& g, bool knows_bias_gradient, bool knows_epilogues) {
  for (Device memory : {Device::cpu, Device::emulated}) {
    Library library{memory, knows_bias_gradient, knows_epilogues};
    const auto run = [&](const Gemm& call) { gemm_by_library(memory, call, std::ref(library)); };
    Problem<T, TC>(g).check(memory, run);
    if (g.k > 0) CHECK(library.did > 0);
  }
}

TEST_CASE("gemm by a library: whatever it refuses, the result is the same") {
  const test::CheckedCpu checked;
  for (Epilogue epilogue :
       {Epilogue::none, Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_gelu, Epilogue::drelu, Epilogue::dgelu})
    for (int knows = 0; knows < 3; ++knows)
      for (int64_t k : {0, 33})
        for (int64_t n : {1, 7, 129}) {
          const Gemm g{.m = 33, .n = n, .k = k, .epilogue = epilogue};
          check<float, float>(g, knows > 1, knows > 0);
          check<double, double>(g, knows > 1, knows > 0);
          check<Bfloat16, Bfloat16>(g, knows > 1, knows > 0);
          check<Half, float>(g, knows > 1, knows > 0);
        }
}

TEST_CASE("gemm by a library: beta, batches and sums of nothing") {
  for (double beta : {0.0, 1.0, 0.5})
    for (int64_t k : {0, 9})
      for (Epilogue epilogue : {Epilogue::none, Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_gelu})
        for (int64_t batch : {1, 3}) {
          Gemm g{.m = 7, .n = 5, .k = k, .beta = beta, .batch = batch};
          g.stride_a = 70, g.stride_b = 0, g.stride_c = 40, g.epilogue = epilogue;
          check<float, float>(g, false, false);
          check<Half, Half>(g, false, false);
        }
}

TEST_CASE("gemm by a library: 16-bit bias gradients are summed in f32 by us") {
  // Fault: the library stores the sums in C's 16 bits, and a bias gradient of many rows stops growing.
  Library library{Device::emulated, true, true};
  bool asked_for_sums = false;
  Problem<Bfloat16> p({.m = 1000, .n = 2, .k = 1, .epilogue = Epilogue::dgelu});
  std::fill(p.a.begin(), p.a.end(), Bfloat16(1));
  std::fill(p.b.begin(), p.b.end(), Bfloat16(1));
  std::fill(p.z.begin(), p.z.end(), Bfloat16(20));  // where gelu's slope is 1
  const auto result = p.on(Device::emulated, [&](const Gemm& call) {
    gemm_by_library(Device::emulated, call, [&](const Gemm& part) {
      asked_for_sums = asked_for_sums || part.bias_gradient;
      return library(part);
    });
  });
  CHECK_FALSE(asked_for_sums);
  CHECK(result.bias_gradient == std::vector<float>(2, 1000));
}

TEST_CASE("gemm by a library: one that has nothing at all is an error that says so") {
  const Problem<float> p({.m = 2, .n = 3, .k = 4, .epilogue = Epilogue::bias});
  const auto run = [](const Gemm& call) { gemm_by_library(Device::cpu, call, [](const Gemm&) { return false; }); };
  CHECK_THROWS_WITH_AS(p.on(Device::cpu, run),
                       doctest::Contains("the library has no algorithm for a plain product of 2x3x4 in f32"), Error);
}

}  // namespace
}  // namespace tapedeck
