// The shape of the tree: who may include whom, how long a file may be, and which flags are refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/this_build.h"

namespace {

namespace fs = std::filesystem;
using namespace tapedeck::test;

const fs::path root = source_dir();

struct File {
  std::string path, folder;  // "engine/tape.cpp", "engine"
  std::vector<std::string> lines;
  std::vector<std::string> includes;  // "engine/check.h", "Eigen/Core"
};

std::vector<File> files_in(const std::set<std::string>& folders, const std::set<std::string>& endings) {
  static const std::regex include(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"].*)");
  std::vector<File> files;
  for (const std::string& folder : folders)
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file() || !endings.contains(entry.path().extension())) continue;
      File file{fs::relative(entry.path(), root), folder, {}, {}};
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line); file.lines.push_back(line))
        if (std::smatch match; std::regex_match(line, match, include)) file.includes.push_back(match[1]);
      files.push_back(file);
    }
  return files;
}

std::vector<File> sources() { return files_in({"engine", "ops", "data", "apps"}, {".h", ".cpp"}); }

// Whether a path is one of the names, or in a folder that ends in "/".
bool is_one_of(const std::string& path, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (path == name || (name.ends_with('/') && path.starts_with(name))) return true;
  return false;
}

}  // namespace

TEST_CASE("a folder includes only what stands below it") {
  const std::map<std::string, std::set<std::string>> allowed = {{"engine", {"engine"}},
                                                                {"ops", {"engine", "ops"}},
                                                                {"data", {"engine", "data"}},
                                                                {"apps", {"engine", "ops", "data", "apps"}}};
  int seen = 0;
  for (const File& file : sources())
    for (const std::string& include : file.includes) {
      const std::string target = include.substr(0, include.find('/'));
      if (!allowed.contains(target) && target != "tests") continue;
      ++seen;
      INFO(file.path << " includes " << include);
      CHECK(allowed.at(file.folder).contains(target));
    }
  CHECK(seen > 20);  // else the search itself is broken
}

TEST_CASE("our headers are included by their path from the root") {
  for (const File& file : sources())
    for (const std::string& include : file.includes) {
      INFO(file.path << " includes " << include);
      CHECK_FALSE(include.starts_with("."));
      CHECK(
          (include.find('/') != std::string::npos || !fs::exists(root / fs::path(file.path).parent_path() / include)));
    }
}

TEST_CASE("each library is included only by the files that may") {
  struct Rule {
    const char* library;
    const char* includes;  // a pattern of include paths
    std::vector<std::string> allowed;
  };
  const Rule rules[] = {
      {"Eigen", "Eigen/.*", {"engine/gemm_eigen.cpp"}},
      {"oneDNN", "(oneapi/)?dnnl.*", {"engine/gemm_onednn.cpp", "engine/gemm_onednn_matmul.cpp"}},
      {"OpenMP", "omp\\.h", {}},
      {"nlohmann/json", "nlohmann/.*", {"apps/", "engine/safetensors.cpp", "data/shard_header.cpp"}},
      {"CLI11", "CLI/.*", {"apps/cli.cpp"}},
      {"cuBLAS", "cublas.*", {"engine/cuda/"}},
      {"CUDA's runtime", "cuda_runtime.*", {"engine/cuda/"}},
      {"CUPTI", "cupti.*", {"engine/cuda/"}},
      {"NVTX", "nvtx3/.*", {"engine/cuda/"}},
      {"doctest", "doctest/.*", {}},
  };
  for (const Rule& rule : rules)
    for (const File& file : sources())
      for (const std::string& include : file.includes)
        if (std::regex_match(include, std::regex(rule.includes))) {
          INFO(rule.library << " is included by " << file.path);
          CHECK(is_one_of(file.path, rule.allowed));
        }
}

TEST_CASE("nothing needs an OpenMP library") {
  // Fault: a build stops, or warns of unknown pragmas, where the compiler has no OpenMP. The `simd` pragmas need none.
  int simd = 0;
  for (const File& file : sources())
    for (const std::string& line : file.lines) {
      INFO(file.path << ": " << line);
      if (line.find("#pragma omp") != std::string::npos) CHECK(line.find("#pragma omp simd") != std::string::npos);
      if (line.find("SIMD_PRAGMA(omp ") != std::string::npos) CHECK(line.find("(omp simd") != std::string::npos);
      simd += line.find("omp simd") != std::string::npos;
    }
  CHECK(simd > 0);
  std::ifstream in(root / "CMakeLists.txt");
  const std::string cmake{std::istreambuf_iterator<char>(in), {}};
  CHECK(cmake.find("-fopenmp-simd") != std::string::npos);
  CHECK(cmake.find("find_package(OpenMP") == std::string::npos);
}

TEST_CASE("no test has a semicolon in its name") {
  // Fault: ctest takes the name for a list of two, and runs neither.
  int names = 0;
  for (const File& file : files_in({"tests"}, {".cpp"}))
    for (size_t i = 0; i < file.lines.size(); ++i)
      if (file.lines[i].starts_with("TEST_CASE(")) {
        std::string name = file.lines[i];  // a long one goes on in the lines below
        while (name.find("\")") == name.npos && i + 1 < file.lines.size()) name += file.lines[++i];
        INFO(file.path << ": " << name);
        CHECK(name.substr(0, name.find("\")")).find(';') == std::string::npos);
        ++names;
      }
  CHECK(names > 200);
}

TEST_CASE("fmt stays out of headers, which nvcc reads") {
  for (const File& file : sources())
    for (const std::string& include : file.includes)
      if (include.starts_with("fmt/")) {
        INFO(file.path << " includes " << include);
        CHECK(file.path.ends_with(".cpp"));
      }
}

TEST_CASE("whoever comes by engine/launch.h includes it, so that a build with CUDA gives the file to nvcc") {
  // Fault: the C++ compiler makes the kernels of a file that launches by way of another header, and on a GPU they
  // throw.
  std::map<std::string, std::vector<std::string>> includes;
  for (const File& file : files_in({"engine", "ops", "data", "apps", "tests"}, {".h", ".cpp"}))
    includes[file.path] = file.includes;
  const std::function<void(const std::string&, std::set<std::string>&)> follow = [&](const std::string& path,
                                                                                     std::set<std::string>& seen) {
    if (includes.contains(path) && seen.insert(path).second)
      for (const std::string& next : includes.at(path)) follow(next, seen);
  };
  int launching = 0;
  for (const auto& entry : includes) {  // clang 14 captures no structured binding in doctest's lambdas
    const std::string& path = entry.first;
    const std::vector<std::string>& own = entry.second;
    const bool op = path.starts_with("ops/") && !path.ends_with("_strips.cpp");  // which nvcc compiles anyway
    if (!path.ends_with(".cpp") || op) continue;
    std::set<std::string> seen;
    follow(path, seen);
    if (!seen.contains("engine/launch.h")) continue;
    ++launching;
    INFO(path);
    CHECK(std::find(own.begin(), own.end(), "engine/launch.h") != own.end());
  }
  CHECK(launching > 10);
}

TEST_CASE("a test that launches kernels puts itself into our namespace") {
  // Fault: nvcc includes CUDA's own headers behind the file, where `using namespace tapedeck` makes their exp
  // ambiguous.
  int launching = 0;
  for (const File& file : files_in({"tests"}, {".cpp"})) {
    if (std::find(file.includes.begin(), file.includes.end(), "engine/launch.h") == file.includes.end()) continue;
    ++launching;
    INFO(file.path);
    CHECK(std::find(file.lines.begin(), file.lines.end(), "using namespace tapedeck;") == file.lines.end());
  }
  CHECK(launching > 3);
}

TEST_CASE("no file grows to 400 lines") {
  for (const File& file : files_in({"engine", "ops", "data", "apps", "tests"}, {".h", ".cpp", ".py", ".sh"})) {
    INFO(file.path << " has " << file.lines.size() << " lines: find the seam");
    CHECK(file.lines.size() < 400);
  }
}

// Fault: under -ffast-math isfinite() is folded away, and NaN passes every check.
TEST_CASE("the compiler refuses -ffast-math in a sentence") {
  const fs::path folder = fs::path(build_dir()) / "fast_math_test";
  fs::create_directories(folder);
  std::ofstream(folder / "probe.cpp") << "#include \"engine/hd.h\"\nint main() {}\n";
  const auto compile = [&](const std::string& flags) {
    const std::string command = compiler() + " -std=c++20 -fsyntax-only -I" + source_dir() + " " + flags + " " +
                                (folder / "probe.cpp").string() + " 2> " + (folder / "messages").string();
    return std::system(command.c_str());
  };
  CHECK(compile("-O2") == 0);  // else a refusal below proves nothing
  for (const char* flags : {"-O2 -ffast-math", "-Ofast", "-ffinite-math-only"}) {
    INFO(flags);
    CHECK(compile(flags) != 0);
    std::stringstream messages;
    messages << std::ifstream(folder / "messages").rdbuf();
    CHECK(messages.str().find("folds isfinite() away") != std::string::npos);
  }
}

TEST_CASE("a build with CUDA off looks for nothing of CUDA") {
  std::ifstream cache(fs::path(build_dir()) / "CMakeCache.txt");
  REQUIRE(cache.is_open());
  std::vector<std::string> names;  // what CMake was asked or searched
  bool off = false;
  for (std::string line; std::getline(cache, line);) {
    const std::string name = line.substr(0, line.find(':'));
    off = off || line == "TAPEDECK_CUDA:STRING=off";
    if (!name.starts_with("//") && std::regex_search(name, std::regex("cuda|cublas|nvcc", std::regex::icase)))
      names.push_back(name);
  }
  if (!off) {
    MESSAGE("skipped: this build has CUDA on");
    return;
  }
  CHECK(names == std::vector<std::string>{"TAPEDECK_CUDA"});
}
