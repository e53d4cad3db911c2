// Times of a device: what stands between two events has run when they are read, and what bench launch and bench step
// make of it.
#include <cstring>
#include <vector>

#include "apps/device_time.h"
#include "engine/emulation/emulated_device.h"
#include "engine/tensor.h"
#include "ops/small_kernel.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#include "tests/mentions.h"

using namespace tapedeck;
using namespace tapedeck::test;
using emulation::Mode;
using emulation::UseMode;

namespace {

Outcome bench(std::vector<std::string> words) {
  words.insert(words.begin(), "bench");
  words.insert(words.end(), {"--threads", "1"});
  return tapedeck::test::tapedeck(words);
}

Json bench_json(std::vector<std::string> words) {
  words.emplace_back("--json");
  const Outcome run = bench(words);
  INFO(run.err);
  REQUIRE(run.code == exit_done);
  return run.json();
}

void check_times(const Json& row, const char* median, int n) {
  INFO(row.dump());
  CHECK(row["n"] == n);
  CHECK(row["p05"] > 0);
  CHECK(row["p05"] <= row[median]);
  CHECK(row[median] <= row["p95"]);
}

std::vector<std::string> short_steps(std::vector<std::string> words) {
  words.insert(words.begin(), {"step", "--batches", "4,6", "--hidden", "8", "--rounds", "2", "--steps", "3"});
  return words;
}

}  // namespace

// Fault: GPU times without waiting: numbers that do not scale with the size, since they are those of the asking alone.
TEST_CASE("device time: all work between the events has run when its time is read") {
  const UseMode lazy(Mode::lazy);  // nothing runs by itself
  const Tensor counter = Tensor::full({1024}, DType::f32, Device::emulated, 0);
  float ran = 0;
  for (const int size : {1, 8}) {
    const std::vector<WorkTime> times = time_work(Device::emulated, 3, [&] {
      for (int i = 0; i < size; ++i) add_one(counter);
    });
    std::memcpy(&ran, counter.ptr<float>() + 1023, sizeof ran);  // a look behind the device's back: this waits not
    CHECK(ran == (size == 1 ? 3 : 3 + 3 * 8));
    CHECK(times.size() == 3);
    for (const WorkTime& time : times) CHECK(time.device > 0);
  }
}

TEST_CASE("device time: a time that is read before its event has happened is an error, also of an event used again") {
  const UseMode lazy(Mode::lazy);
  Backend& queues = backend(Device::emulated);
  const auto from = queues.event(), to = queues.event();
  const auto message = [&] {
    try {
      queues.seconds(*from, *to);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  CHECK(contains(message(), "has not happened"));
  for (int i = 0; i < 2; ++i) {
    queues.record(*from, Queue::compute);
    queues.record(*to, Queue::compute);
    CHECK(contains(message(), "has not happened"));
    queues.wait(*from);
    CHECK(contains(message(), "has not happened"));
    queues.wait(*to);
    CHECK(message() == "no error");
  }
}

TEST_CASE("bench launch: every number of kernels has its four times") {
  const Json document = bench_json({"launch", "--device", "emulated", "--rounds", "2"});
  CHECK(document["machine"]["processor"].is_string());
  CHECK(document["device"] == "emulated");
  CHECK(document["warmup_rounds"] == 3);
  CHECK(contains(document["emulation"].get<std::string>(), "not of a GPU"));
  CHECK(document["no_graphs"].is_null());
  std::string rows;
  for (const Json& row : document["rows"]) {
    check_times(row, "median_us", 2);
    rows += std::to_string(row["kernels"].get<int>()) + " " + row["way"].get<std::string>() + " " +
            row["clock"].get<std::string>() + " " + row["per"].get<std::string>() + "\n";
  }
  std::string expected;
  for (const char* kernels : {"1", "10", "100", "400"})
    for (const char* time :
         {" one by one host kernel\n", " one by one device kernel\n", " graph device node\n", " graph host replay\n"})
      expected += std::string(kernels) + time;
  CHECK(rows == expected);
}

TEST_CASE("bench launch: on a device that waits to be waited for, all kernels of a time have run") {
  const UseMode lazy(Mode::lazy);
  const Json document = bench_json({"launch", "--device", "emulated", "--rounds", "1"});  // it counts them itself
  for (const Json& row : document["rows"]) check_times(row, "median_us", 1);
}

TEST_CASE("bench launch: a device without graphs has empty columns, and the table says why") {
  const TemporaryFolder folder;
  const std::string saved = folder / "saved.json";
  const Outcome run = bench({"launch", "--device", "cpu", "--rounds", "2", "--save", saved});
  INFO(run.out << run.err);
  REQUIRE(run.code == exit_done);
  CHECK(mentions(run.out,
                 {"on cpu", "3 warm-up rounds left out", "n = 2 rounds", "cpu has no graphs to capture", "400"}));
  CHECK_FALSE(contains(run.out, "emulation"));
  const Json document = read_json(saved);
  CHECK(document["emulation"].is_null());
  for (const Json& row : document["rows"]) {
    if (row["way"] == "one by one") {
      check_times(row, "median_us", 2);
      continue;
    }
    CHECK(row["n"] == 0);
    for (const char* key : {"median_us", "p05", "p95"}) CHECK(row[key].is_null());
  }
}

TEST_CASE(
    "bench launch: takes the device of --device auto unless told, says what an emulation is, and refuses other "
    "options") {
  const char* const chosen = why_no_cuda().empty() ? "on cuda" : "on cpu";
  CHECK(contains(bench({"launch", "--rounds", "1"}).out, chosen));
  CHECK(contains(bench({"launch", "--device", "emulated", "--rounds", "1"}).out, "times of an emulation"));
  for (const std::vector<std::string>& words : {std::vector<std::string>{"launch", "--device", "abacus"},
                                                {"launch", "--rounds", "0"},
                                                {"launch", "--batches", "3"},
                                                {"launch", "--graph", "on"}}) {
    const Outcome run = bench(words);
    INFO(words[1] << " " << run.err);
    CHECK(run.code == exit_usage);
    CHECK(contains(run.err, words[1].substr(2)));  // names the option
    CHECK(run.out.empty());
  }
}

TEST_CASE("bench step: plain steps and replayed ones take turns, and the ratio has its interval") {
  for (const Mode mode : {Mode::eager, Mode::lazy}) {  // it counts the updates of the weights itself
    const UseMode use(mode);
    const Json document = bench_json(short_steps({"--device", "emulated"}));
    CHECK(document["peak_gflops"].is_null());  // that of the CPU says nothing here
    CHECK(document["rows"].size() == 4);
    for (size_t i = 0; i < document["rows"].size(); ++i) {
      const Json& row = document["rows"][i];
      check_times(row, "median_ms", 6);
      CHECK(row["batch"] == (i < 2 ? 4 : 6));
      CHECK(row["graph"] == (i % 2 == 1));
      CHECK(row["share_of_peak"].is_null());
      if (i % 2 == 0) {
        CHECK(row["nodes"].is_null());
        CHECK_FALSE(row.contains("over_plain"));
        continue;
      }
      CHECK(row["nodes"] > 10);
      CHECK(row["over_plain"]["n"] == 2);
      CHECK(row["over_plain"]["ratio_low"] <= row["over_plain"]["ratio"]);
      CHECK(row["over_plain"]["ratio"] <= row["over_plain"]["ratio_high"]);
    }
  }
}

TEST_CASE("bench step: --graph picks one way, which a device without graphs refuses") {
  for (const bool on : {true, false}) {
    const Outcome run = bench(short_steps({"--device", "emulated", "--graph", on ? "on" : "off"}));
    INFO(run.err);
    REQUIRE(run.code == exit_done);
    CHECK(contains(run.out, " nodes ") == on);
    CHECK(contains(run.out, " plain ") != on);
    CHECK_FALSE(contains(run.out, "graph / plain"));
  }
  const Outcome refused = bench(short_steps({"--device", "cpu", "--graph", "on"}));
  CHECK(refused.code == exit_usage);
  CHECK(mentions(refused.err, {"--graph on", "cpu has no graphs"}));
}

TEST_CASE("bench step: a batch that does not fit into memory is named, and the rows of the others stay") {
  for (const std::string device : {"cpu", "emulated"}) {
    const TemporaryFolder folder;
    const std::string save = folder / "step.json";
    const std::vector<std::string> words = {"step", "--batches", "4,1000000,6", "--hidden",       "8",      "--rounds",
                                            "2",    "--steps",   "3",           "--memory-limit", "256MiB", "--graph",
                                            "off",  "--device",  device,        "--save",         save};
    const Outcome run = bench(words);
    INFO(run.out << run.err);
    CHECK(run.code == exit_out_of_memory);
    CHECK(mentions(run.err, {"round 1 of 2: batch 4", "round 2 of 2: batch 6", "batch 1000000 does not fit",
                             "does not fit into memory: batch 1000000.", "arena " + device}));
    CHECK_FALSE(contains(run.err, "round 2 of 2: batch 1000000"));
    const Json document = read_json(save);
    CHECK(document["does_not_fit"].size() == 1);
    CHECK(document["does_not_fit"][0]["size"] == "batch 1000000");
    REQUIRE(document["rows"].size() == 2);
    CHECK(document["rows"][0]["batch"] == 4);
    CHECK(document["rows"][1]["batch"] == 6);
    for (const Json& row : document["rows"]) check_times(row, "median_ms", 6);
    CHECK(contains(run.out, "\n     4 "));
    CHECK(contains(run.out, "\n     6 "));
  }
}

TEST_CASE("bench step: a step that does not fit though its examples do leaves the others' rows") {
  const Outcome run = bench({"step", "--batches", "4,10000", "--hidden", "4000", "--rounds", "1", "--steps", "1",
                             "--json", "--memory-limit", "256MiB", "--device", "cpu"});
  INFO(run.out << run.err);
  CHECK(run.code == exit_out_of_memory);
  CHECK(run.json()["rows"].size() == 1);
  CHECK(run.json()["does_not_fit"][0]["size"] == "batch 10000");
}

TEST_CASE("bench step: too little memory for the machine's peak leaves the rows without it") {
  const Outcome run = bench(short_steps({"--device", "cpu", "--json", "--memory-limit", "64MiB"}));
  INFO(run.out << run.err);
  CHECK(run.code == exit_done);
  CHECK(contains(run.err, "the peak is not measured"));
  CHECK(run.json()["peak_gflops"].is_null());
  CHECK(run.json()["rows"][0]["share_of_peak"].is_null());
}

TEST_CASE("bench step: --quiet says nothing of its rounds") {
  const Outcome run = bench(short_steps({"--device", "cpu", "--quiet"}));
  CHECK(run.code == exit_done);
  CHECK_FALSE(contains(run.err, "round"));
}
