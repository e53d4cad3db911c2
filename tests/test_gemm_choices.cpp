// Which algorithm a product takes, and the file that remembers it, on a double of cuBLASLt.
#if !__has_include(<cublasLt.h>)
#include <doctest/doctest.h>
TEST_CASE("cublaslt choices: timed once and remembered in a file") { MESSAGE("skipped: no cublasLt.h"); }
#else
#include <fstream>
#include <sstream>

#include "tests/cublaslt_setting.h"

namespace tapedeck {
namespace {

using test::Small;
using Setting = test::CublasLtSetting;

std::string content(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST_CASE("cublaslt choices: the fastest is taken, timed once, and remembered in a file") {
  Setting s;
  Small small;
  CHECK(s.run(small.g));
  CHECK_EQ(s.fake.last_algorithm, 1);
  CHECK_EQ(small.c[0], 4);
  const int timed = s.timed;
  CHECK(timed > 0);
  CHECK(s.run(small.g));
  s.restart();
  CHECK(s.run(small.g));
  CHECK_EQ(s.fake.last_algorithm, 1);
  CHECK_EQ(s.timed, timed);
  CHECK_EQ(s.fake.heuristics, 1);
  CHECK_EQ(s.fake.checks, 1);  // what a file says is looked at once
  CHECK(content(s.file()).starts_with("tapedeck gemm choices 1\n2x3x4 NN f32>f32 exact none aligned "));
  int files = 0;  // nothing half-written lies beside it
  for (const auto& entry : std::filesystem::directory_iterator(s.file().parent_path()))
    files += entry.is_regular_file();
  CHECK_EQ(files, 1);
}

TEST_CASE("cublaslt choices: whatever may change the answer is part of the question") {
  Setting s;
  Small small;
  std::vector<double> doubles(64);
  std::vector<float> aux(64, 1), sums(64);
  int asked = 0;
  const auto is_new = [&](const char* what, const auto& change) {
    Gemm g = small.g;
    change(g);
    CAPTURE(what);
    CHECK(s.run(g));
    CHECK_EQ(s.fake.heuristics, ++asked);
    CHECK(s.run(g));
    CHECK_EQ(s.fake.heuristics, asked);
  };
  is_new("as it is", [](Gemm&) {});
  is_new("size", [](Gemm& g) { g.k = 3; });
  is_new("transpose", [](Gemm& g) { g.transpose_b = true; });
  is_new("beta", [](Gemm& g) { g.beta = 1; });
  is_new("alignment", [&](Gemm& g) { g.a = small.ones.data() + 1; });
  is_new("batch", [](Gemm& g) { g.batch = 2, g.stride_c = 6; });
  is_new("epilogue", [](Gemm& g) { g.epilogue = Epilogue::bias; });
  is_new("aux", [&](Gemm& g) { g.epilogue = Epilogue::bias_gelu, g.n = 8, g.aux = aux.data(); });
  is_new("no aux", [](Gemm& g) { g.epilogue = Epilogue::bias_gelu, g.n = 8; });
  is_new("backward", [&](Gemm& g) { g.epilogue = Epilogue::dgelu, g.n = 8, g.aux = aux.data(); });
  is_new("sums",
         [&](Gemm& g) { g.epilogue = Epilogue::dgelu, g.n = 8, g.aux = aux.data(), g.bias_gradient = sums.data(); });
  is_new("type",
         [&](Gemm& g) { g.dtype = DType::f64, g.a = doubles.data(), g.b = doubles.data(), g.c = doubles.data() + 32; });
}

TEST_CASE("cublaslt choices: a damaged or foreign file is ignored and written anew") {
  // Fault: half a line is read as an algorithm, and the product returns garbage.
  Setting s;
  Small small;
  CHECK(s.run(small.g));
  const std::string good = content(s.file());
  const std::string damaged[] = {"",
                                 "tapedeck gemm choices 2" + good.substr(good.find('\n')),
                                 good.substr(0, good.size() - 20),
                                 good + "more\n",
                                 std::string(good).replace(good.size() - 5, 1, "g"),
                                 std::string(100, '\0')};
  for (const std::string& text : damaged) {
    CAPTURE(text);
    std::ofstream(s.file()) << text;
    s.restart();
    const int before = s.fake.heuristics;
    CHECK(s.run(small.g));
    CHECK_EQ(s.fake.heuristics, before + 1);
    CHECK_EQ(content(s.file()), good);
  }
}

TEST_CASE("cublaslt choices: an algorithm that the library no longer takes is chosen anew") {
  Setting s;
  Small small;
  CHECK(s.run(small.g));
  s.fake.unknown_algorithms = {1};
  s.restart();
  CHECK(s.run(small.g));
  CHECK_EQ(s.fake.last_algorithm, 2);  // the next best
}

TEST_CASE("cublaslt choices: two processes add to one file") {
  Setting s;
  Small small, other;
  other.g.k = 5;
  CHECK(s.run(small.g));
  const std::string first = content(s.file());
  std::filesystem::remove(s.file());
  s.restart();
  CHECK(s.run(other.g));  // meanwhile another process has written the first one
  std::ofstream(s.file()) << first;
  other.g.k = 6;
  CHECK(s.run(other.g));
  const std::string all = content(s.file());
  for (const char* key : {"2x3x4 NN", "2x3x5 NN", "2x3x6 NN"}) CHECK(all.find(key) != std::string::npos);
}

TEST_CASE("cublaslt choices: nothing is timed during a capture, and nothing remembered") {
  Setting s;
  Small small;
  s.capturing = true;
  CHECK(s.run(small.g));
  CHECK_EQ(s.fake.last_algorithm, 0);  // the first that was offered
  CHECK_EQ(s.timed, 0);
  CHECK_FALSE(std::filesystem::exists(s.file()));
  s.capturing = false;
  CHECK(s.run(small.g));
  CHECK_EQ(s.fake.last_algorithm, 1);
  s.capturing = true;
  const int timed = s.timed;
  CHECK(s.run(small.g));
  CHECK_EQ(s.fake.last_algorithm, 1);  // what was chosen before
  CHECK_EQ(s.timed, timed);
}

TEST_CASE("cublaslt choices: without a place for the file products run all the same") {
  Setting s;
  const test::Environment nowhere("XDG_CACHE_HOME", "/dev/null");  // no folder can be made in it, not even by root
  s.restart();
  Small small;
  CHECK(s.run(small.g));
  CHECK(s.run(small.g));
  CHECK_EQ(s.fake.last_algorithm, 1);
  CHECK_EQ(s.fake.heuristics, 1);
}

}  // namespace
}  // namespace tapedeck
#endif
