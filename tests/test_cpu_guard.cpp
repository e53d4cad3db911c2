// A binary on a processor that it was not built for: qemu's user emulation plays the other processor.
#include <doctest/doctest.h>
#include <stdio.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "apps/cpu_features.h"
#include "tests/this_build.h"

namespace {

struct Outcome {
  int exit_code;
  std::string text;  // stdout and stderr, without what qemu says of itself
};

Outcome run(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe);
  Outcome outcome{-1, ""};
  char line[4096];
  while (fgets(line, sizeof line, pipe))
    if (!std::string_view(line).starts_with("qemu-x86_64: warning")) outcome.text += line;
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  return outcome;
}

bool build_uses(const std::string& name) {
  for (auto* feature = tapedeck::cpu_features.begin; feature != tapedeck::cpu_features.end; ++feature)
    if (feature->name == name) return feature->used;
  return false;
}

// The program on another processor: a sentence with the missing feature if the build uses it, else it works.
void runs_or_explains(const std::string& processor, const std::string& missing) {
  if (!tapedeck::test::sanitizers().empty()) {
    MESSAGE("skipped: a sanitizer's memory map does not fit into qemu");
    return;
  }
  if (std::system("command -v qemu-x86_64 > /dev/null") != 0) {
    MESSAGE("skipped: no qemu-x86_64 here (Debian: qemu-user)");
    return;
  }
  const Outcome outcome =
      run("qemu-x86_64 -cpu " + processor + " " + tapedeck::test::build_dir() + "/tapedeck --version");
  INFO(processor << " says: " << outcome.text);
  const bool refused = outcome.exit_code == 1;  // perhaps for another instruction: AMD's SSE4A on an Intel processor
  if (build_uses(missing)) CHECK(refused);
  if (refused) {
    CHECK(outcome.text.starts_with("tapedeck: this binary uses instructions that this processor lacks ("));
    CHECK((outcome.text.find(missing) != std::string::npos) == build_uses(missing));
    CHECK(outcome.text.find('\n') == outcome.text.size() - 1);
  } else {
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.text.find("flags") != std::string::npos);
  }
}

}  // namespace

// Fault: a binary built with -march=native dies of an illegal instruction on another processor.
TEST_CASE("a processor without AVX is refused in a sentence") { runs_or_explains("Nehalem", "AVX2"); }
TEST_CASE("a processor without AVX-512 is refused in a sentence") { runs_or_explains("Haswell", "AVX512F"); }

TEST_CASE("the features of this build are what the compiler's flags say") {
#if defined(__AVX2__)
  CHECK(build_uses("AVX2"));
#else
  CHECK_FALSE(build_uses("AVX2"));
#endif
#if defined(__x86_64__)
  CHECK(tapedeck::cpu_features.end - tapedeck::cpu_features.begin > 30);
#endif
}
