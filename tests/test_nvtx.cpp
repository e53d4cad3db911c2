// Ranges for tools that watch from outside: what such a tool is told of, and that NVTX brings it there.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "engine/scope.h"
#include "engine/trace.h"
#include "ops/ops.h"
#include "tests/environment.h"
#include "tests/process.h"
#include "tests/test_data_folder.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {
Tensor ones() { return Tensor::full({2, 3}, DType::f32, Device::cpu, 1); }
}  // namespace

TEST_CASE("a tool that watches from outside is told of ranges and ops in their order, and keeps nothing") {
  static std::vector<std::string> told;
  told.clear();
  static const OutsideTool tool = {[](const char* name) { told.push_back(std::string("+") + name); },
                                   [] { told.push_back("-"); }, [](const char* name) { told.push_back(name); }};
  {
    const ToldOutside outside(&tool);
    const Range forward("forward");
    const Scope layer("layer");
    softmax(ones());
    const TracedOp update("adam");
    CHECK(static_cast<bool>(update));
  }
  CHECK(told == std::vector<std::string>{"+forward", "+layer", "softmax", "+adam", "-", "-", "-"});
  CHECK(Tracer::current() == nullptr);
  const ToldOutside none(nullptr);
  CHECK(Tracer::current() == nullptr);
}

// A tool of our own (tests/gpu/nvtx_tool.cpp) takes the place of nsys.
TEST_CASE("train tells NVIDIA's tools its ranges by NVTX, each begun and ended, and without a tool nobody") {
  const std::string tool = build_dir() + "/libnvtx_tool.so";
  if (!std::filesystem::exists(tool)) {
    std::cout << "skipped: built without NVTX\n";
    return;
  }
  for (const std::string& named : {tool, std::string()}) {
    const Environment environment("NVTX_INJECTION64_PATH", named);
    const TemporaryFolder folder;
    Process train({"train", "--data", "blobs", "--hidden", "4", "--steps", "2", "--device", "cpu", "--quiet", "--out",
                   folder / "run"},
                  folder / "");
    REQUIRE(train.wait() == 0);
    int open = 0, forward = 0, products = 0, least = 0;
    std::istringstream lines(train.err());
    for (std::string line; std::getline(lines, line);) {
      open += line.starts_with("nvtx +") ? 1 : line == "nvtx -" ? -1 : 0;
      least = std::min(least, open);
      forward += line == "nvtx +forward";
      products += line == "nvtx +gemm";
    }
    CHECK(open == 0);
    CHECK(least == 0);
    CHECK((forward >= 2) == !named.empty());
    CHECK((products >= 2 * 5) == !named.empty());
  }
}
