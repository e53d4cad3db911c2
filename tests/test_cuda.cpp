// Fault: a CUDA build on a machine without driver asserts at startup or exits 127 since libcuda.so.1 is a hard
// dependency.
#include <stdlib.h>

#include <cstdlib>
#include <string>

#include "engine/device.h"
#include "engine/gpu.h"
#include "tests/gpu.h"
#include "tests/process.h"
#include "tests/runs.h"
#include "tests/training.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

// The empty string hides every GPU from CUDA; see Environment, which would remove the variable.
class HiddenGpus {
 public:
  HiddenGpus() { setenv("CUDA_VISIBLE_DEVICES", "", 1); }
  ~HiddenGpus() { before_ ? setenv("CUDA_VISIBLE_DEVICES", before_->c_str(), 1) : unsetenv("CUDA_VISIBLE_DEVICES"); }
  HiddenGpus(const HiddenGpus&) = delete;
  HiddenGpus& operator=(const HiddenGpus&) = delete;

 private:
  static std::optional<std::string> now() {
    const char* const value = std::getenv("CUDA_VISIBLE_DEVICES");
    return value ? std::optional<std::string>(value) : std::nullopt;
  }
  const std::optional<std::string> before_ = now();
};

const Words short_run = {"train", "--data", "blobs", "--steps", "5", "--hidden", "8"};

std::string why_hidden() {  // what the program says where it sees no GPU
  if (!built_with_cuda()) return "this program was built without CUDA";
  return gpus().empty() ? why_no_cuda() : "no GPU is visible: CUDA_VISIBLE_DEVICES is \"\"";
}

void check_one_line(const std::string& text) {
  INFO(text);
  CHECK(!text.empty());
  CHECK(text.find('\n') == text.size() - 1);
}

}  // namespace

TEST_CASE("cuda: where it cannot be used, --device cuda says why in one line") {
  const HiddenGpus hidden;
  for (const char* command : {"train", "gradcheck", "evaluate"}) {
    const TemporaryFolder folder;
    Words words = {command, "--device", "cuda"};
    if (std::string(command) == "evaluate") words.push_back("model.safetensors");
    Process process(words, folder.path());
    CHECK(process.wait() == exit_failed);
    check_one_line(process.err());
    CHECK(contains(process.err(), "device cuda: "));
    CHECK(contains(process.err(), why_hidden()));
    CHECK(process.out().empty());
  }
}

TEST_CASE("cuda: without a GPU --device auto computes on the CPU, and a build with CUDA says why") {
  const HiddenGpus hidden;
  const TemporaryFolder folder;
  Process process(short_run + Words{"--device", "auto", "--out", folder / "run"}, folder.path());
  REQUIRE(process.wait() == exit_done);
  INFO(process.err());
  CHECK(contains(process.err(), "computing on the CPU: " + why_hidden()) == built_with_cuda());
  const Json machine = read_json(folder / "run/machine.json");
  CHECK(machine["device"] == "cpu");
  CHECK(machine["gpu"].is_null());
  CHECK(machine["driver"].is_null());

  Process quiet(short_run + Words{"--device", "auto", "--out", folder / "quiet", "--quiet"}, folder.path());
  REQUIRE(quiet.wait() == exit_done);
  CHECK(quiet.err().empty());
}

TEST_CASE("cuda: help and info work where there is no GPU") {
  const HiddenGpus hidden;
  const TemporaryFolder folder;
  Process help({"train", "--help"}, folder.path());
  CHECK(help.wait() == exit_done);
  CHECK(contains(help.out(), "--device"));
  Process info({"info"}, folder.path());
  CHECK(info.wait() == exit_done);
  INFO(info.out());
  CHECK(contains(info.out(), "cuda: cannot be used: " + why_hidden()));
}

TEST_CASE("cuda: the program names no library of CUDA that has to be there when it starts") {
  const TemporaryFolder folder;
  const std::string list = folder / "needed.txt";
  if (std::system(("readelf -d " + build_dir() + "/tapedeck > " + list + " 2> /dev/null").c_str()) != 0) {
    MESSAGE("skipped: no readelf here (Debian: binutils)");
    return;
  }
  const std::string needed = read_file(list);
  INFO(needed);
  CHECK(contains(needed, "NEEDED"));
  CHECK(contains(needed, "libc.so"));
  for (const char* library : {"libcuda", "libcudart", "libcublas", "libnv"}) CHECK_FALSE(contains(needed, library));
}

TEST_CASE("cuda: a device's name is read to its last letter") {
  const int before = chosen_gpu();
  CHECK(find_device("cuda") == Device::cuda);
  CHECK(chosen_gpu() == before);
  CHECK(find_device("cuda:1") == Device::cuda);
  CHECK(chosen_gpu() == 1);
  choose_gpu(before);
  for (const char* wrong :
       {"cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda: 1", "cuda:99999999999", "gpu", "CUDA", ""}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(find_device(wrong), UsageError);
  }
  CHECK(chosen_gpu() == before);
  CHECK(std::string(name(Device::cuda)) == "cuda");
  const Outcome outcome = tapedeck::test::tapedeck(short_run + Words{"--device", "gpu"});
  CHECK(outcome.code == exit_usage);
  check_one_line(outcome.err);
}

// Fault: a test that means the CPU runs on the GPU of the machine, and passes or fails by another's rounding.
TEST_CASE("cuda: a command line of a test that does not say where computes on the CPU, GPU or not") {
  CHECK(on_cpu({"train", "--steps", "1"}, true) == Words{"train", "--steps", "1", "--device", "cpu"});
  CHECK(on_cpu({"bench", "step"}, true) == Words{"bench", "step", "--device", "cpu"});
  for (const Words& as_it_is :
       {Words{"train", "--device", "auto"}, Words{"train", "--device=cuda"}, Words{"data", "list"},
        Words{"train", "--resume", "run"}, Words{"train", "--config=x"}, Words{}})
    CHECK(on_cpu(as_it_is, true) == as_it_is);
  CHECK(on_cpu({"train"}, false) == Words{"train"});
  const Outcome outcome = tapedeck::test::tapedeck(short_run + Words{"--json", "--quiet"});
  REQUIRE(outcome.code == exit_done);
  CHECK(outcome.json()["device"] == "cpu");
  Training training({{"data", "blobs"}, {"hidden", "8"}});
  CHECK(training.device == Device::cpu);
}

TEST_CASE("on a GPU: --device auto takes it, and the run's folder names it") {
  if (no_gpu()) return;
  const TemporaryFolder folder;
  Process process(short_run + Words{"--device", "auto", "--out", folder / "run"}, folder.path());
  REQUIRE(process.wait() == exit_done);
  const Json machine = read_json(folder / "run/machine.json");
  CHECK(machine["device"] == "cuda:0");
  CHECK(machine["gpu"]["name"] == gpus().at(0).name);
  CHECK(machine["driver"].is_string());
}

TEST_CASE("on a GPU: a GPU that is not there is named in one line") {
  if (no_gpu()) return;
  const TemporaryFolder folder;
  const std::string last = std::to_string(gpus().size() - 1);
  Process process({"train", "--device", "cuda:999"}, folder.path());
  CHECK(process.wait() == exit_failed);
  check_one_line(process.err());
  CHECK(contains(process.err(), "there is no cuda:999 here: the last GPU is cuda:" + last));
}

TEST_CASE("on a GPU: ops, gemm, steps and step graphs are tested there as well") {
  if (no_gpu()) return;  // else the tests that loop over all_devices() have taken it
  CHECK(devices_with_lanes() == std::vector{Device::emulated, Device::cuda});
}
