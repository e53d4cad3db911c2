// tapedeck profile: which steps it profiles, what its files say, and that the run beside it is as ever.
#include <filesystem>

#include "apps/profile_overhead.h"
#include "apps/profile_rows.h"
#include "apps/profile_session.h"
#include "tests/message_of.h"
#include "tests/program.h"
#include "tests/resident.h"
#include "tests/test_data_folder.h"
#include "tests/training.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

const std::vector<std::string> small = {"profile", "--data", "blobs", "--hidden", "8", "--threads", "1", "--quiet"};

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<int64_t> active_steps(const char* window) {
  const ProfileWindow w = parse_window(window);
  std::vector<int64_t> steps;
  for (int64_t step = 0; step < 100; ++step)
    if (w.part(step) == ProfileWindow::Part::active) steps.push_back(step);
  return steps;
}

const Json& row(const Json& rows, const std::string& name, const std::string& way) {
  for (const Json& r : rows)
    if (r["name"] == name && r["way"] == way) return r;
  throw std::runtime_error("no row " + name + " " + way);
}

}  // namespace

// Fault B56: the window recorded the wrong steps (2, 3, 4 for 3, 4, 5), or none at all.
TEST_CASE("a window says exactly which steps are profiled") {
  using Steps = std::vector<int64_t>;
  CHECK(active_steps("skip=0,wait=1,warmup=2,active=3,repeat=1") == Steps{3, 4, 5});
  CHECK(active_steps("wait=0,warmup=0,active=5,repeat=1") == Steps{0, 1, 2, 3, 4});
  CHECK(active_steps("skip=10,wait=1,warmup=1,active=2,repeat=2") == Steps{12, 13, 16, 17});
  CHECK(active_steps("repeat=1") == Steps{2, 3, 4});
  for (const char* wrong :
       {"", "active=0", "active=-1", "active=x", "actve=3", "active=3,active=4", "active=3,", "active"}) {
    INFO(wrong);
    CHECK_THROWS_AS(parse_window(wrong), UsageError);
  }
}

TEST_CASE("profile: the steps of its window and no others are in table and trace, with their calls") {
  const TemporaryFolder folder;
  const std::string trace = folder / "trace.json";
  const Outcome outcome = tapedeck::test::tapedeck(
      with(small, {"--steps", "20", "--window", "wait=1,warmup=2,active=3", "--trace", trace, "--json"}));
  INFO(outcome.err);
  REQUIRE(outcome.code == exit_done);
  const Json json = outcome.json();
  CHECK(json["profiled_steps"] == Json({3, 4, 5}));
  CHECK(json["steps"] == 3);
  CHECK(row(json["ops"], "gemm", "forward")["calls"] == 6);  // hidden0 and out
  CHECK(row(json["ops"], "gemm", "backward")["calls"] == 9);
  CHECK(row(json["ops"], "adam", "")["calls"] == 3);
  CHECK(row(json["ops"], "data", "")["calls"] == 3);
  double sum = json["in_no_op_ms"];
  for (const Json& op : json["ops"]) {
    sum += op["self_ms"].get<double>();
    CHECK(op["share"] <= 1);
  }
  CHECK(sum == doctest::Approx(json["step_ms"].get<double>()).epsilon(1e-6));
  std::vector<std::string> names;
  for (const Json& range : json["ranges"]) {
    names.push_back(range["name"]);
    if (range["name"] != "data") continue;
    CHECK(range["calls"] == 3);
    CHECK(range["in_no_op_ms"] == 0);  // it counts as an op
    CHECK(range["total_ms"] == row(json["ops"], "data", "")["total_ms"]);
  }
  for (const char* wanted : {"data", "forward", "backward", "optimizer", "mlp", "mlp.hidden0", "mlp.out"}) {
    INFO(wanted);
    CHECK(std::find(names.begin(), names.end(), wanted) != names.end());
  }
  int steps = 0, products = 0;
  const Json written = Json::parse(read_file(trace));
  for (const Json& event : written["traceEvents"]) {
    steps += event["name"] == "step";
    products += event["name"] == "gemm";
  }
  CHECK(steps == 3);
  CHECK(products == 15);
  CHECK(json["what_if"].size() >= 2);
}

TEST_CASE("profile: a run shorter than the window says so, fails, and leaves no file") {
  const TemporaryFolder folder;
  const Outcome outcome =
      tapedeck::test::tapedeck(with(small, {"--steps", "4", "--trace", folder / "trace.json", "--json"}));
  CHECK(outcome.code == exit_usage);
  CHECK(contains(outcome.err, "ends behind 5 steps"));
  CHECK(contains(outcome.err, "has only 4"));
  CHECK(outcome.out.empty());
  CHECK_FALSE(std::filesystem::exists(folder / "trace.json"));
}

TEST_CASE("profile: the table for people, cut to --top and sorted by --sort, ends with what there is to win") {
  const Outcome outcome = tapedeck::test::tapedeck(with(small, {"--sort", "calls", "--top", "4"}));
  INFO(outcome.err);
  REQUIRE(outcome.code == exit_done);
  for (const char* part : {"steps 2 to 4 of the run", "self ms", "at most", "in no op", "sum", "more", "mlp.hidden0",
                           "times as long as the plain step", "1. ", "2. "}) {
    INFO(part);
    CHECK(contains(outcome.out, part));
  }
  CHECK(contains(outcome.out, "loading ahead"));
}

TEST_CASE("profile: profiled steps are marked in the metrics and left out of the step times") {
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  const Outcome outcome = tapedeck::test::tapedeck(
      with(small, {"--window", "skip=2,wait=1,warmup=1,active=2", "--log-every", "1", "--out", out}));
  INFO(outcome.err);
  REQUIRE(outcome.code == exit_done);
  std::vector<int64_t> marked;
  std::ifstream lines(out + "/metrics.jsonl");
  for (std::string line; std::getline(lines, line);)
    if (const Json entry = Json::parse(line); entry.contains("profiled")) marked.push_back(entry["step"]);
  CHECK(marked == std::vector<int64_t>{4, 5, 6});  // counted from 1, that of the warm-up included
  CHECK(read_json(out + "/summary.json")["step_ms"]["n"] == 3);
  const Outcome resumed =
      tapedeck::test::tapedeck({"train", "--resume", out, "--steps", "10", "--epochs", "1", "--quiet"});
  INFO(resumed.err);
  CHECK(resumed.code == exit_done);  // a run like any other
}

TEST_CASE("profile: a profiled run trains bitwise as a plain one does") {
  for (const char* recompute : {"none", "blocks"}) {
    const std::vector<Setting> options = {{"data", "blobs"},  {"hidden", "8"},          {"steps", "6"},
                                          {"dropout", "0.2"}, {"recompute", recompute}, {"accumulate", "2"}};
    Training watched(options);
    ProfileSession session(parse_window("wait=1,warmup=1,active=3"), watched.device);
    watched.trainer.watch(session);
    watched.trainer.run();
    session.finish();
    CHECK(session.steps() == std::vector<int64_t>{2, 3, 4});
    CHECK(watched.weights() == trained_weights(options));
    CHECK(profile_of(session.tracer()).steps == 3);
  }
}

// Fault: the logical clock ran for the whole run, whose own steps then took a microsecond a kernel.
TEST_CASE("profile: on the emulated device the steps beside the window have real times") {
  for (const char* evaluate : {"1", "1000"}) {  // each step begins on an idle device, or behind the one before
    Training watched({{"data", "blobs"},
                      {"hidden", "8"},
                      {"batch", "4"},
                      {"steps", "6"},
                      {"device", "emulated"},
                      {"graph", "off"},
                      {"eval-every", evaluate}});
    ProfileSession session(parse_window("wait=2,warmup=0,active=1,repeat=2"), watched.device);
    watched.trainer.watch(session);
    const Summary summary = watched.trainer.run();
    session.finish();
    INFO("evaluated every " << std::string(evaluate) << " steps");
    CHECK(session.steps() == std::vector<int64_t>{2, 5});
    const double logical = 1e3 * profile_of(session.tracer()).wall / 2;
    REQUIRE(summary.step_ms.has_value());
    CHECK(summary.step_ms->n == 4);
    CHECK(summary.step_ms->p05_ms > 1.2 * logical);
    REQUIRE(summary.throughput.examples_per_s.has_value());  // none where profiled steps took longer than the run
    CHECK(*summary.throughput.examples_per_s < 1.2e3 * 4 / summary.step_ms->p05_ms);
  }
}

TEST_CASE("profile: an emulated trace says that it has no line for threads that load") {
  for (const char* workers : {"0", "1"}) {
    const TemporaryFolder folder;
    const Outcome outcome = tapedeck::test::tapedeck({"profile",
                                                      "--data",
                                                      "task:copy:length=5,symbols=8",
                                                      "--layers",
                                                      "1",
                                                      "--heads",
                                                      "1",
                                                      "--width",
                                                      "8",
                                                      "--device",
                                                      "emulated",
                                                      "--batch",
                                                      "2",
                                                      "--threads",
                                                      "1",
                                                      "--workers",
                                                      workers,
                                                      "--window",
                                                      "wait=0,active=4",
                                                      "--trace",
                                                      folder / "trace.json",
                                                      "--quiet"});
    INFO(outcome.err << outcome.out);
    REQUIRE(outcome.code == exit_done);
    CHECK(contains(outcome.out, "no line for the threads that load") == (*workers == '1'));
  }
}

TEST_CASE("profile: what profiling costs is not measured to its end where it is stopped") {
  const Config config = configure("profile", {{"data", "blobs"}, {"hidden", "8"}, {"device", "cpu"}, {"threads", "1"}});
  const Device device = prepare_machine(config);
  const Problem problem(config, device, DType::f32);
  int asked = 0;
  CHECK_FALSE(measure_overhead(config, problem, device, DType::f32, [&] { return ++asked == 20; }).has_value());
  CHECK(asked == 20);
}

// Fault: steps whose spans were dropped count in the figures a step, and a full profiler lets the run go on to its end.
TEST_CASE("profile: where it is full, whole steps are kept and it is over") {
  ProfileSession session(parse_window("wait=0,warmup=0,active=50"), Device::cpu, nullptr, 10);
  const Tensor x = Tensor::full({4}, DType::f32, Device::cpu, 1);
  int64_t step = 0;
  for (; step < 50 && !session.over(); ++step) {  // four spans each: two steps fit
    session.begins(step);
    for (int i = 0; i < 3; ++i) relu(x);
    session.ends(step);
  }
  session.finish();
  CHECK(step == 3);
  CHECK(session.full());
  CHECK(session.steps() == std::vector<int64_t>{0, 1});
  CHECK(session.tracer().spans().size() == 8);
  CHECK(profile_of(session.tracer()).steps == 2);
}

// Fault B95: a profiler that goes on gathering after its steps.
TEST_CASE("profile: outside of its active steps nothing of the profiler grows") {
  ProfileSession session(parse_window("skip=1,wait=1,warmup=3,active=1"), Device::cpu);
  const Tensor x = Tensor::full({4}, DType::f32, Device::cpu, 1);
  const auto step = [&](int64_t i) {
    session.begins(i);
    relu(x);
    session.ends(i);
  };
  for (int64_t i = 0; i < 5; ++i) step(i);
  CHECK(session.tracer().spans().empty());
  for (int64_t i = 5; i < 2000; ++i) step(i);
  CHECK(session.tracer().spans().size() == 2);
  CHECK(session.tracer().moments().size() == 3);
  CHECK(session.steps() == std::vector<int64_t>{5});
}

// Fault B95, of a whole run: steps outside of the window leave memory behind, the arena's or the process's.
TEST_CASE("profile: a long run beside its window takes no more memory after 1,900 steps than after 200") {
  class Memory : public StepWatch {  // of each step's end, which is outside of every tape
   public:
    explicit Memory(StepWatch& inner) : inner_(inner) {}
    void begins(int64_t step) override { inner_.begins(step); }
    void ends(int64_t step) override {
      inner_.ends(step);
      const Arena::Use use = backend(Device::cpu).arena().use();
      if (step == 200) first = {use.buffers, use.bytes, resident_bytes()};
      if (step == 1900) last = {use.buffers, use.bytes, resident_bytes()};
    }
    bool slows(int64_t step) const override { return inner_.slows(step); }
    struct Seen {
      int64_t buffers = 0;
      size_t bytes = 0, resident = 0;
    } first, last;

   private:
    StepWatch& inner_;
  };
  Training training({{"data", "blobs"}, {"hidden", "8"}, {"batch", "16"}, {"steps", "1950"}, {"epochs", "100000"}});
  ProfileSession session(parse_window("skip=50,wait=10,warmup=5,active=2,repeat=3"), training.device);
  Memory memory(session);
  training.trainer.watch(memory);
  training.trainer.run();
  session.finish();
  CHECK(session.steps().size() == 6);
  REQUIRE(memory.first.bytes > 0);
  CHECK(memory.last.buffers == memory.first.buffers);
  CHECK(memory.last.bytes == memory.first.bytes);
  if (measures_resident)
    CHECK(static_cast<double>(memory.last.resident) <= 1.01 * static_cast<double>(memory.first.resident));
}

TEST_CASE("profile: a step that does not end leaves the others whole") {
  ProfileSession session(parse_window("wait=0,warmup=0,active=3"), Device::cpu);
  const Tensor x = Tensor::full({4}, DType::f32, Device::cpu, 1);
  session.begins(0);
  relu(x);
  session.ends(0);
  session.begins(1);
  session.finish();
  CHECK(Tracer::current() == nullptr);
  const Profile p = profile_of(session.tracer());
  CHECK(p.steps == 1);
  CHECK(session.steps() == std::vector<int64_t>{0});
}

TEST_CASE("profile: a gpt with recomputation on the emulated device") {
  const Outcome outcome = tapedeck::test::tapedeck({"profile",
                                                    "--data",
                                                    "task:copy:length=5,symbols=8",
                                                    "--layers",
                                                    "1",
                                                    "--heads",
                                                    "2",
                                                    "--width",
                                                    "16",
                                                    "--batch",
                                                    "2",
                                                    "--recompute",
                                                    "blocks",
                                                    "--device",
                                                    "emulated",
                                                    "--threads",
                                                    "1",
                                                    "--window",
                                                    "wait=0,active=1",
                                                    "--quiet",
                                                    "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == exit_done);
  const Json json = outcome.json();
  CHECK(row(json["ops"], "attention", "forward")["calls"] == 1);
  CHECK(row(json["ops"], "attention", "again")["calls"] == 1);
  CHECK(row(json["ops"], "attention", "backward")["calls"] == 1);
  CHECK(row(json["ops"], "attention", "forward")["of_roof"].is_null());
  CHECK(row(json["ops"], "attention", "forward")["gflops"].is_null());  // times are logical
  double sum = json["in_no_op_ms"];
  for (const Json& op : json["ops"]) sum += op["self_ms"].get<double>();
  CHECK(sum == doctest::Approx(json["step_ms"].get<double>()).epsilon(1e-6));
}

TEST_CASE(
    "profile: its pictures are files beside the trace, and a roofline without roofs is refused before anything runs") {
  const TemporaryFolder folder;
  const std::string memory = folder / "memory.svg", roofline = folder / "roofline.svg";
  const Outcome outcome = tapedeck::test::tapedeck(with(small, {"--memory", memory, "--roofline", roofline}));
  INFO(outcome.err);
  REQUIRE(outcome.code == exit_done);
  CHECK(contains(read_file(memory), "saved for backward"));
  CHECK(contains(read_file(roofline), "gemm forward"));
  const std::string other = folder / "other.svg";
  const Outcome refused = tapedeck::test::tapedeck(with(small, {"--roofline", other, "--precision", "fp64"}));
  CHECK(refused.code == exit_usage);
  CHECK(contains(refused.err, "--precision fp32"));
  CHECK_FALSE(std::filesystem::exists(other));
}

TEST_CASE("profile: the trace of the emulated device is the same in every run, but for the memory") {
  const TemporaryFolder folder;
  std::vector<Json> traces;
  for (const char* graph : {"off", "on"}) {  // plain steps are profiled either way
    const std::string file = folder / graph;
    const Outcome outcome =
        tapedeck::test::tapedeck(with(small, {"--device", "emulated", "--graph", graph, "--batch", "4", "--window",
                                              "wait=0,active=2", "--trace", file}));
    INFO(outcome.err);
    REQUIRE(outcome.code == exit_done);
    Json events = Json::array();
    const Json written = Json::parse(read_file(file));
    for (const Json& event : written["traceEvents"])
      if (event["ph"] != "C") events.push_back(event);
    traces.push_back(events);
  }
  CHECK(traces[0].size() > 50);
  const bool same = traces[0] == traces[1];  // not printed whole where they differ
  CHECK(same);
}
