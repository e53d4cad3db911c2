// gemm on every device against three plain loops in double. The CPU's runs through oneDNN or Eigen, as built.
#include "engine/gemm.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/gemm_problem.h"
#include "tests/gpu.h"
#include "tests/settings.h"

namespace tapedeck {
namespace {

using test::CheckedCpu;
using test::nan;
using test::Problem;
using test::Threads;

void check_everywhere(const Gemm& g) {
  const CheckedCpu checked;
  for (Device device : test::all_devices()) {
    Problem<float>(g).check(device);
    Problem<double>(g).check(device);
  }
}

TEST_CASE("gemm: every transpose and ragged size equals the plain loops") {
  for (int64_t m : {1, 2, 31, 33, 129})
    for (int64_t n : {1, 2, 31, 33, 129})
      for (int64_t k : {1, 2, 31, 33, 129}) {
        if (m * n * k > 50'000 && m + n + k != 3 * 129 && m != 1 && n != 31) continue;  // a few large ones suffice
        for (int flags = 0; flags < 4; ++flags)
          check_everywhere({.m = m, .n = n, .k = k, .transpose_a = (flags & 1) != 0, .transpose_b = (flags & 2) != 0});
      }
}

TEST_CASE("gemm: alpha and beta, with beta 0 the old C is never read") {
  // Fault: beta 0 multiplies the old C, and NaN in fresh memory survives. (Every case with beta 0 starts from NaN.)
  for (double alpha : {1.0, -0.5, 0.0})
    for (double beta : {0.0, 1.0, 0.5})
      for (int flags = 0; flags < 4; ++flags)
        check_everywhere({.m = 33,
                          .n = 17,
                          .k = 31,
                          .transpose_a = (flags & 1) != 0,
                          .transpose_b = (flags & 2) != 0,
                          .alpha = alpha,
                          .beta = beta});
}

TEST_CASE("gemm: batches, with strides, gaps between the products and a shared operand") {
  for (int64_t batch : {1, 2, 5, 33})
    for (int flags = 0; flags < 4; ++flags)
      for (int shared = 0; shared < 2; ++shared)
        check_everywhere({.m = 7,
                          .n = 5,
                          .k = 9,
                          .transpose_a = (flags & 1) != 0,
                          .transpose_b = (flags & 2) != 0,
                          .beta = shared ? 1.0 : 0.0,
                          .batch = batch,
                          .stride_a = 70,
                          .stride_b = shared ? 0 : 45,
                          .stride_c = 40});
}

TEST_CASE("gemm: epilogues add the bias, apply the activation, and leave in aux what its backward reads") {
  for (Epilogue epilogue : {Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_gelu})
    for (double beta : {0.0, 1.0}) {
      check_everywhere({.m = 33, .n = 65, .k = 17, .beta = beta, .epilogue = epilogue});
      check_everywhere({.m = 1, .n = 1, .k = 1, .beta = beta, .epilogue = epilogue});
      check_everywhere({.m = 7, .n = 129, .k = 33, .beta = beta, .epilogue = epilogue});
      check_everywhere(
          {.m = 3, .n = 31, .k = 8, .transpose_b = true, .batch = 4, .stride_a = 24, .epilogue = epilogue});
    }
}

TEST_CASE("gemm: drelu and dgelu multiply by the slope and sum the columns") {
  for (Epilogue epilogue : {Epilogue::drelu, Epilogue::dgelu})
    for (int64_t m : {1, 7, 129})
      for (int64_t n : {1, 33, 129})
        for (int flags = 0; flags < 4; ++flags)
          check_everywhere({.m = m,
                            .n = n,
                            .k = 7,
                            .transpose_a = (flags & 1) != 0,
                            .transpose_b = (flags & 2) != 0,
                            .alpha = 0.5,
                            .epilogue = epilogue});
}

TEST_CASE("gemm: without aux or bias gradient the epilogues give the same C") {  // not on cuda, whose library may then
                                                                                 // choose another algorithm
  for (Device device : {Device::cpu, Device::emulated}) {
    for (Epilogue epilogue : {Epilogue::bias_relu, Epilogue::bias_gelu}) {
      Problem<float> p({.m = 9, .n = 40, .k = 5, .epilogue = epilogue});
      const auto with_aux = p.on(device);
      p.with_aux = false;
      CHECK(p.on(device).c == with_aux.c);
    }
    for (Epilogue epilogue : {Epilogue::drelu, Epilogue::dgelu}) {
      Problem<float> p({.m = 9, .n = 40, .k = 5, .epilogue = epilogue});
      const auto with_sums = p.on(device);
      p.with_bias_gradient = false;
      CHECK(p.on(device).c == with_sums.c);
    }
  }
}

template <class T>
void check_16bit(const Gemm& g) {
  const CheckedCpu checked;
  for (Device device : test::all_devices()) {
    Problem<T>(g).check(device);
    Problem<T, float>(g).check(device);
  }
}

TEST_CASE("gemm: f16 and bf16 in and out, and f32 out of 16-bit inputs") {
  for (Epilogue epilogue :
       {Epilogue::none, Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_gelu, Epilogue::drelu, Epilogue::dgelu})
    for (double beta : {0.0, 1.0, 0.5})
      for (int flags = 0; flags < 4; ++flags) {
        Gemm g{.m = 33, .n = 17, .k = 129, .transpose_a = (flags & 1) != 0, .transpose_b = (flags & 2) != 0};
        g.epilogue = epilogue, g.beta = beta;
        if (beta != 0 && (epilogue == Epilogue::drelu || epilogue == Epilogue::dgelu)) continue;
        check_16bit<Half>(g);
        check_16bit<Bfloat16>(g);
        g.m = 1, g.n = 129, g.k = 0;
        check_16bit<Bfloat16>(g);
      }
  check_16bit<Half>({.m = 7, .n = 5, .k = 9, .batch = 3, .stride_a = 70, .stride_b = 0, .stride_c = 40});
}

TEST_CASE("gemm: an f32 C of 16-bit inputs is not rounded to 16 bits") {
  // Fault: weight gradients pass through 16 bits on their way to f32, and what is small beside the sum is lost.
  for (Device device : test::all_devices()) {
    Problem<Half, float> p({.m = 1, .n = 1, .k = 3});
    p.a = {Half(1), Half(1), Half(1)}, p.b = {Half(2048), Half(0.25), Half(0.25)};
    CHECK_EQ(p.on(device).c[0], 2048.5f);
  }
}

TEST_CASE("gemm: an inner size of 0 is a sum of nothing, a C without elements is left alone") {
  for (double beta : {0.0, 3.0})
    for (Epilogue epilogue : {Epilogue::none, Epilogue::bias_relu})
      check_everywhere({.m = 5, .n = 7, .k = 0, .beta = beta, .epilogue = epilogue});
  check_everywhere({.m = 0, .n = 7, .k = 3});
  check_everywhere({.m = 5, .n = 0, .k = 3});
  check_everywhere({.m = 5, .n = 7, .k = 3, .batch = 0});
  check_everywhere({.m = 0, .n = 0, .k = 0});
}

TEST_CASE("gemm: work split among threads covers C once, either way round") {
  for (int count : {1, 2, 3, 8}) {
    const Threads threads(count);
    for (Epilogue epilogue : {Epilogue::none, Epilogue::bias_gelu, Epilogue::bias_relu, Epilogue::dgelu}) {
      const bool backward = epilogue == Epilogue::dgelu;
      for (int flags = 0; flags < 4; ++flags) {
        Gemm g{.m = 259, .n = 65, .k = 129, .transpose_a = (flags & 1) != 0, .transpose_b = (flags & 2) != 0};
        g.beta = backward ? 0 : 1, g.epilogue = epilogue;
        Problem<float>(g).check(Device::cpu);
        Problem<double>(g).check(Device::cpu);
        std::swap(g.m, g.n);
        Problem<float>(g).check(Device::cpu);
      }
      if (backward) continue;
      Problem<float>({.m = 65, .n = 33, .k = 129, .batch = 9, .stride_a = 65 * 129, .epilogue = epilogue})
          .check(Device::cpu);
    }
  }
}

template <class Result>
bool same_bits(const Result& x, const Result& y) {
  const auto same = [](const auto& p, const auto& q) {
    return p.size() == q.size() && std::memcmp(p.data(), q.data(), p.size() * sizeof(p[0])) == 0;
  };
  return same(x.c, y.c) && same(x.aux, y.aux) && same(x.bias_gradient, y.bias_gradient);
}

TEST_CASE("gemm: the same threads give the same bits, other threads the same within rounding") {
  // Fault: the order of additions follows the scheduling, and runs with one seed drift apart.
  for (Epilogue epilogue : {Epilogue::bias_relu, Epilogue::dgelu}) {
    const Problem<float> p({.m = 259, .n = 130, .k = 257, .epilogue = epilogue});
    const Problem<Bfloat16> q({.m = 65, .n = 130, .k = 64, .epilogue = epilogue});
    for (int count : {1, 2, 4}) {
      const Threads threads(count);
      const auto first = p.on(Device::cpu);
      const auto first_q = q.on(Device::cpu);
      for (int run = 0; run < 3; ++run) {
        CHECK(same_bits(p.on(Device::cpu), first));
        CHECK(same_bits(q.on(Device::cpu), first_q));
      }
      p.check(Device::cpu);
    }
  }
}

TEST_CASE("gemm: one thread means one thread") {
  // Fault: the library below starts a thread a core on its own, and the thread count promised is not the one in use.
  const Problem<float> p({.m = 300, .n = 300, .k = 300});
  const Threads threads(1);
  const auto tasks = [] {
    const std::filesystem::directory_iterator all("/proc/self/task");
    return std::distance(begin(all), end(all));
  };
  int64_t before = 0, after = 0;
  std::thread([&] {  // a new thread has no team yet
    before = tasks();
    p.on(Device::cpu);
    after = tasks();
  })
      .join();
  CHECK_EQ(after, before);
}

TEST_CASE("gemm: NaN passes through relu's epilogue") {
  // Fault: max(x, 0) written as x > 0 ? x : 0 turns NaN into 0 and hides a divergence.
  for (Device device : test::all_devices()) {
    Problem<float> p({.m = 3, .n = 20, .k = 4, .epilogue = Epilogue::bias_relu});
    p.a[4] = static_cast<float>(nan);  // row 1
    const auto c = p.on(device).c;
    for (int i = 0; i < 60; ++i) CHECK_EQ(std::isnan(c[i]), i / 20 == 1);
  }
}

TEST_CASE("gemm: without rows a bias gradient is 0") {
  for (Device device : test::all_devices())
    for (Epilogue epilogue : {Epilogue::drelu, Epilogue::dgelu})
      CHECK(Problem<float>({.m = 0, .n = 3, .k = 2, .epilogue = epilogue}).on(device).bias_gradient ==
            std::vector<float>(3, 0));
}

TEST_CASE("gemm: what it cannot do is refused") {
  float numbers[4] = {};
  const auto refused = [](const Gemm& g, const char* message) {
    for (Device device : test::all_devices()) CHECK_THROWS_WITH_AS(gemm(device, g), doctest::Contains(message), Error);
  };
  const Gemm square{.m = 2, .n = 2, .k = 2};
  Gemm g = square;
  g.dtype = DType::i32;
  refused(g, "takes f64, f32, f16 or bf16, got i32");
  g.dtype = DType::f16, g.c_dtype = DType::bf16;
  refused(g, "C is bf16, but products of f16 are stored as f16 or f32");
  g.dtype = DType::f64, g.c_dtype = DType::f32;
  refused(g, "C is f32, but products of f64 are stored as f64");
  g.dtype = DType::f32, g.c_dtype = DType::f16;
  refused(g, "C is f16, but products of f32 are stored as f32");
  g = square, g.k = -1;
  refused(g, "cannot be negative, got 2x2x-1");
  for (Epilogue epilogue : {Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_gelu}) {
    g = square, g.epilogue = epilogue;
    refused(g, "needs a bias");
  }
  g = square, g.epilogue = Epilogue::drelu;
  refused(g, "drelu needs the aux that bias_relu left");
  g.epilogue = Epilogue::dgelu;
  refused(g, "dgelu needs the aux that bias_gelu left");
  g.aux = numbers, g.beta = 1;
  refused(g, "dgelu writes C, so beta must be 0, got 1");
  for (Epilogue epilogue : {Epilogue::none, Epilogue::bias}) {
    g = square, g.epilogue = epilogue, g.bias = numbers, g.aux = numbers;
    refused(g, "aux belongs to bias_relu, bias_gelu, drelu or dgelu");
  }
  g.epilogue = Epilogue::bias_gelu, g.batch = 2;
  refused(g, "what belongs to one product, got a batch of 2");
  g = square, g.epilogue = Epilogue::bias_relu, g.bias = numbers, g.bias_gradient = numbers;
  refused(g, "a bias gradient comes with drelu or dgelu, got bias_relu");
}

TEST_CASE("gemm: TF32 is off until asked for, and changes nothing but on a GPU") {
  CHECK_FALSE(tf32());
  const Problem<float> p({.m = 9, .n = 9, .k = 9});
  const auto before = p.on(Device::cpu).c;
  set_tf32(true);
  CHECK(tf32());
  CHECK(p.on(Device::cpu).c == before);
  set_tf32(false);
}

}  // namespace
}  // namespace tapedeck
