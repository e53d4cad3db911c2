// Our cuBLASLt code on a double of the library, for tests.
#pragma once
#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "engine/cuda/cublaslt.h"
#include "engine/gemm_epilogue.h"
#include "tests/environment.h"
#include "tests/fake_cublaslt.h"
#include "tests/gemm_problem.h"
#include "tests/test_data_folder.h"

namespace tapedeck::test {

constexpr size_t workspace_bytes = 4 << 20;
inline const std::vector<Epilogue> all_epilogues = {Epilogue::none,      Epilogue::bias,  Epilogue::bias_relu,
                                                    Epilogue::bias_gelu, Epilogue::drelu, Epilogue::dgelu};

// cuBLASLt's double as new, a cache folder of its own, and a clock by which algorithm i takes seconds[i].
struct CublasLtSetting {
  TemporaryFolder folder;
  test::Environment cache{"XDG_CACHE_HOME", folder.path()};
  test::FakeCublasLt& fake = test::fake_cublaslt();
  std::vector<double> seconds = {3, 1, 2};
  bool capturing = false;
  int timed = 0;
  std::unique_ptr<CublasLt> lt;

  CublasLtSetting() { fake = {}, restart(); }
  ~CublasLtSetting() {
    lt.reset();
    CHECK_EQ(fake.alive, 0);  // every descriptor was destroyed
  }
  void restart() {  // as the next run of the program
    lt.reset();
    CublasLtHost host;
    host.capturing = [this] { return capturing; };
    host.seconds = [this](const std::function<void()>& work) {
      ++timed;
      work();
      return seconds.at(static_cast<size_t>(std::max(fake.last_algorithm, 0)));
    };
    host.scratch = [](size_t bytes) -> std::shared_ptr<void> {
      return {std::malloc(bytes), [](void* p) { std::free(p); }};
    };
    lt = std::make_unique<CublasLt>(test::fake_cublaslt_functions(), host, "Test GPU");
  }
  bool run(const Gemm& g) { return lt->run(g, {nullptr, nullptr, workspace_bytes}); }
  std::function<void(const Gemm&)> whole() {  // as a device's gemm
    return [this](const Gemm& g) { gemm_by_library(Device::cpu, g, [this](const Gemm& part) { return run(part); }); };
  }
  template <class T, class TC = T>
  void check(const Gemm& g) {
    Problem<T, TC>(g).check(Device::cpu, whole());
  }
  std::filesystem::path file() const {
    return std::filesystem::path(folder.path()) / "tapedeck/gemm-Test-GPU-130000.txt";
  }
};

// A 2×n product of ones, to see whether and how it runs.
struct Small {
  std::vector<float> ones = std::vector<float>(64, 1), c = std::vector<float>(64, -7);
  Gemm g{.m = 2, .n = 3, .k = 4};
  Small() { g.a = ones.data(), g.b = ones.data(), g.c = c.data(), g.bias = ones.data(); }
};

}  // namespace tapedeck::test
