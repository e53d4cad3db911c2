// Steps that are replayed as a graph, in a trace by kernels: whose each kernel is, what a replayed step comes to, and
// that the run beside it is as ever. The records are made up, by the marks that the tracer asked for.
#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>
#include <memory>
#include <set>

#include "apps/memory_picture.h"
#include "apps/profile_graph.h"
#include "apps/profile_session.h"
#include "apps/trace_file.h"
#include "apps/what_if.h"
#include "engine/backend.h"
#include "engine/gpu.h"
#include "engine/graph_times.h"
#include "engine/step_graph.h"
#include "ops/ops.h"
#include "tests/gpu.h"
#include "tests/program.h"
#include "tests/training.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using tapedeck::test::contains;
using tapedeck::test::Training;

namespace {

int64_t steady_now() { return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Follows graphs of the emulated device. `answer` makes up what it has recorded.
class Following final : public KernelRecorder {
 public:
  using Answer = std::function<std::vector<KernelRecord>(const Following&)>;
  explicit Following(Answer made_up = nullptr) : answer(std::move(made_up)) {}
  std::string start() override { return ""; }
  std::vector<KernelRecord> take() override {
    std::vector<KernelRecord> records = answer ? answer(*this) : std::exchange(next, {});
    asked.clear();
    return records;
  }
  void stop() noexcept override {}
  void push(uint64_t mark) noexcept override {
    (backend(Device::emulated).capturing() ? captured : asked).push_back(mark);
    ++open;
  }
  void pop() noexcept override { --open; }
  std::string follow_graphs() override { return refuses; }

  Answer answer;
  std::string refuses;
  std::vector<KernelRecord> next;
  std::vector<uint64_t> asked, captured;  // asked: since the last take()
  int open = 0;
};

// A kernel under each mark, and of a graph that each launches a kernel of each node, one behind the other.
std::vector<KernelRecord> everything(const Following& f, bool in_order = true) {
  std::vector<KernelRecord> records;
  const int64_t now = steady_now();
  for (const uint64_t mark : f.asked) {
    records.push_back({.begin = now, .end = now + 1, .mark = mark});
    for (size_t i = 0; i < f.captured.size(); ++i) {
      const int64_t begin = now + static_cast<int64_t>(in_order ? 10 * i : 10 * (f.captured.size() - i));
      records.push_back(
          {.begin = begin, .end = begin + 5, .graph_node = 70 + i, .mark = mark, .captured = f.captured[i]});
    }
  }
  return records;
}

KernelRecord of_node(uint64_t call, uint64_t captured, double begin, double end) {
  return {.name = "k",
          .begin = std::llround(begin * 1e9),
          .end = std::llround(end * 1e9),
          .correlation = static_cast<uint32_t>(call),
          .graph_node = 70 + captured,
          .mark = call,
          .captured = captured};
}

const OpRow& find(const Profile& profile, const std::string& label) {
  for (const OpRow& row : profile.ops)
    if (row.label() == label) return row;
  throw std::runtime_error("no row " + label);
}
const RangeRow& range(const Profile& profile, const std::string& name) {
  for (const RangeRow& row : profile.ranges)
    if (row.name == name) return row;
  throw std::runtime_error("no range " + name);
}

struct Row {
  std::string label;
  int64_t calls;
  double flops, bytes;
  int64_t saved;
  bool operator==(const Row&) const = default;
  bool operator<(const Row& other) const { return label < other.label; }
};
std::set<Row> counts(const Profile& profile) {  // but for data, which a replay has within and without
  std::set<Row> rows;
  for (const OpRow& r : profile.ops)
    if (r.name != "data") rows.insert({r.label(), r.calls, r.flops, r.bytes, r.saved});
  return rows;
}

struct Profiled {
  Profile profile;
  int64_t not_replayed = 0;
  std::vector<double> weights;
  double most_memory = 0;
  std::vector<std::string> parts = {};
};
Profiled profile_run(std::vector<Setting> settings, bool replays, const char* window) {
  for (const Setting& s : std::vector<Setting>{{"data", "blobs"},
                                               {"device", "emulated"},
                                               {"hidden", "8"},
                                               {"batch", "16"},
                                               {"dropout", "0.3"},
                                               {"steps", "8"}})
    settings.push_back(s);
  settings.push_back({"graph", replays ? "on" : "off"});
  Training training(settings);
  ProfileSession session(parse_window(window), Device::emulated);
  auto recorder = std::make_unique<Following>([](const Following& f) { return everything(f); });
  Following& follows = *recorder;
  session.record_kernels(std::move(recorder));
  REQUIRE(session.why_events() == "");
  if (replays) REQUIRE(session.follow_graphs() == "");
  follows.answer = nullptr;
  training.trainer.watch(session);
  training.trainer.run();
  session.finish();
  CHECK(follows.open == 0);
  Profiled out{profile_of(session.tracer()), steps_not_replayed(session.tracer()), training.weights()};
  const std::vector<Span>& spans = session.tracer().spans();
  for (const Span& span : spans)  // a batch is waited for before the graph, and not while it is replayed
    if (span.kind == Span::Kind::range && span.parent >= 0)
      CHECK(session.tracer().text(spans[static_cast<size_t>(span.parent)].name) != "data");
  const MemoryTimeline memory = memory_timeline(session.tracer(), {});
  out.most_memory = memory.total(memory.peak);
  for (const MemoryTimeline::Part& part : memory.parts) out.parts.push_back(part.name);
  return out;
}

}  // namespace

TEST_CASE("graph times: a node has the mark that it was made under, and a copy that of its original") {
  GraphMarks marks;
  marks.created(1, 10);
  marks.created(2, 0);  // under none
  marks.created(11, 99), marks.cloned(11, 1);
  marks.cloned(12, 1), marks.created(12, 99);
  marks.created(13, 99), marks.cloned(13, 2);
  marks.cloned(21, 11);
  marks.cloned(14, 1000);  // of one that nobody was told of
  for (const uint64_t node : {1, 11, 12, 21}) CHECK(marks.of(node) == 10);
  for (const uint64_t node : {2, 13, 14, 1000}) CHECK(marks.of(node) == 0);
}

TEST_CASE("graph times: records get the mark of their own replay, by its call and by what they were captured under") {
  const std::vector<Replay> replays = {{50, {10, 11, 14}, {50, 51, 52}}, {60, {10, 11, 14}, {60, 61, 62}}};
  std::vector<KernelRecord> records;
  const auto add = [&](uint64_t mark, uint64_t captured) { records.push_back({.mark = mark, .captured = captured}); };
  add(50, 10), add(50, 14), add(60, 11), add(60, 10);
  add(60, 0), add(60, 12), add(60, 99), add(60, 1);  // nodes made under no mark, or under another graph's
  add(70, 11), add(0, 11), add(11, 0);               // of a replay that nobody traced, and of none
  join_replays(records, replays);
  const std::vector<uint64_t> expected = {50, 52, 61, 60, 60, 60, 60, 60, 70, 0, 11};
  for (size_t i = 0; i < records.size(); ++i) CHECK(records[i].mark == expected[i]);
}

TEST_CASE("tracer by kernels: a replayed step has the ops that were captured, at the times of its own kernels") {
  double now = 100;
  Following recorder;
  Tracer tracer(Device::emulated, [&] { return now; });
  tracer.record_kernels(&recorder);
  StepGraph graph(Device::emulated, true);
  const Tensor x = Tensor::full({2, 3}, DType::f32, Device::emulated, 1);
  const auto work = [&] {
    softmax(x);
    const Range backward("backward");
    relu(x);
  };
  for (int i = 0; i < 2; ++i) graph.run({}, work, &recorder);  // while nobody traces
  REQUIRE(recorder.captured.size() == 6);  // begin, softmax, begin of the range, relu, end of the range, end
  CHECK(recorder.open == 0);
  CHECK(recorder.asked.empty());
  now = 200;
  {
    const Tracer::On on(tracer);
    const Range step("step");
    for (int i = 0; i < 2; ++i) graph.run({}, work, &recorder);
    now = 210;
  }
  REQUIRE(recorder.asked.size() == 6);  // begin, begin and end of each replay, end
  const uint64_t first = recorder.asked[1], second = recorder.asked[3];
  const uint64_t in_softmax = recorder.captured[0], in_relu = recorder.captured[2];
  recorder.next = {of_node(first, in_softmax, 201, 203), of_node(first, in_relu, 203, 204),
                   of_node(second, in_softmax, 204, 207), of_node(second, in_relu, 207, 207.5),
                   of_node(second, 0, 208, 209)};  // of a node that is not known
  tracer.take_kernels();
  tracer.finish();
  const Profile p = profile_of(tracer);
  CHECK(p.steps == 1);
  CHECK(p.replayed);
  CHECK(find(p, "softmax forward").own == doctest::Approx(5));
  CHECK(find(p, "softmax forward").calls == 2);
  CHECK(find(p, "softmax forward").bytes == doctest::Approx(2 * 2 * 24));
  CHECK(find(p, "relu forward").own == doctest::Approx(1.5));
  CHECK(range(p, "backward").total == doctest::Approx(1.5));
  CHECK(range(p, "backward").calls == 2);
  CHECK(range(p, "replay").own == doctest::Approx(1));
  CHECK(p.between == doctest::Approx(1));
  CHECK(p.idle == doctest::Approx(2.5));
  CHECK(p.wall == doctest::Approx(10));
  CHECK(contains(possible_wins(p, {}, {}, true)[0].text, "replayed already"));
  CHECK(steps_not_replayed(tracer) == 0);

  const Json json = Json::parse(trace_text(tracer, "main").json);
  int of_softmax = 0, on_host = 0, unknown = 0;
  for (const Json& event : json["traceEvents"]) {
    if (event["ph"] != "X") continue;
    if (event["cat"] != "kernel") {
      on_host += event["cat"] == "op";
    } else if (!event["args"].contains("op")) {
      ++unknown;
    } else {
      of_softmax += event["args"]["op"] == "softmax" && event["args"]["way"] == "forward";
    }
  }
  CHECK(of_softmax == 2);
  CHECK(unknown == 1);
  CHECK(on_host == 0);  // the host asked for the whole replay at once
}

TEST_CASE("tracer by kernels: the step that is captured is a capture and a replay in the trace of that step") {
  Following recorder;
  Tracer tracer(Device::emulated);
  tracer.record_kernels(&recorder);
  StepGraph graph(Device::emulated, true);
  const Tensor x = Tensor::full({2, 3}, DType::f32, Device::emulated, 1);
  for (int step = 0; step < 3; ++step) {
    const Tracer::On on(tracer);
    const Range range("step");
    graph.run(
        {}, [&] { relu(x); }, &recorder);
    REQUIRE(Tracer::current() == &tracer);
  }
  tracer.finish();
  const Profile p = profile_of(tracer);
  CHECK(p.steps == 3);
  CHECK(find(p, "relu forward").calls == 3);
  CHECK(range(p, "capture").calls == 1);
  CHECK(range(p, "replay").calls == 2);
  CHECK(steps_not_replayed(tracer) == 2);
  uint64_t last = 0;
  for (const TraceMoment& m : tracer.moments()) {
    CHECK(m.mark > last);  // moment_of() looks for them in order
    last = m.mark;
  }
}

TEST_CASE("tracer: replays that are more than it can hold fill it") {
  Following recorder;
  Tracer tracer(Device::emulated, nullptr, 8);
  tracer.record_kernels(&recorder);
  StepGraph graph(Device::emulated, true);
  const Tensor x = Tensor::full({2, 3}, DType::f32, Device::emulated, 1);
  const auto run = [&] {
    const auto work = [&] { relu(relu(relu(x))); };
    graph.run({}, work, &recorder);
  };
  run(), run();
  for (int step = 0; step < 2; ++step) {
    const Tracer::On on(tracer);
    const Range range("step");
    run();
    CHECK(tracer.full() == (step == 1));
  }
  CHECK(tracer.spans().size() <= 7);
}

TEST_CASE("profile: a replayed run has the ops of the plain one, as often and as large, and changes no weight") {
  for (const char* accumulate : {"1", "2"}) {
    INFO("accumulate " << accumulate);
    const std::vector<Setting> settings = {{"accumulate", accumulate}};
    const char* const window = "skip=4,wait=0,warmup=1,active=2";
    const Profiled plain = profile_run(settings, false, window), replayed = profile_run(settings, true, window);
    CHECK(plain.profile.steps == 2);
    CHECK(replayed.profile.steps == 2);
    CHECK(plain.not_replayed == 2);
    CHECK(replayed.not_replayed == 0);
    CHECK(replayed.profile.replayed);
    CHECK_FALSE(plain.profile.replayed);
    CHECK(counts(plain.profile).size() > 8);
    CHECK((counts(plain.profile) == counts(replayed.profile)));
    CHECK(range(plain.profile, "optimizer").calls == range(replayed.profile, "optimizer").calls);
    CHECK(plain.weights == replayed.weights);
    CHECK(find(replayed.profile, "data").calls == 2 * find(plain.profile, "data").calls);  // the second in the graph
    CHECK(plain.most_memory == replayed.most_memory);
    CHECK(plain.parts.back() == "optimizer");
    CHECK(replayed.parts.back() == "optimizer");
    const Profiled from_the_first = profile_run(settings, true, "wait=0,warmup=0,active=4");
    CHECK(from_the_first.not_replayed >= 2);
    CHECK(from_the_first.not_replayed <= 4);
    CHECK(from_the_first.weights == plain.weights);
  }
}

TEST_CASE("profile: replays are profiled only if a trial's kernels come back as those of their ops") {
  const auto why = [](const Following::Answer& answer, const char* refuses = "") {
    ProfileSession session(parse_window("active=1"), Device::emulated);
    auto recorder = std::make_unique<Following>(answer);
    recorder->refuses = refuses;
    session.record_kernels(std::move(recorder));
    REQUIRE(session.why_events() == "");
    const std::string reason = session.follow_graphs();
    CHECK((session.graphs() != nullptr) == reason.empty());
    return reason;
  };
  CHECK(why([](const Following& f) { return everything(f); }) == "");
  CHECK(contains(why([](const Following& f) { return everything(f, false); }), "did not tell which op"));
  CHECK(contains(why([](const Following& f) {
                   std::vector<KernelRecord> records = everything(f);
                   for (KernelRecord& k : records) k.captured = 0;  // of no node that is known
                   return records;
                 }),
                 "did not tell which op"));
  CHECK(why([](const Following& f) { return everything(f); }, "another profiler has it") == "another profiler has it");
  ProfileSession without(parse_window("active=1"), Device::emulated);
  CHECK(contains(without.follow_graphs(), "only CUPTI"));
  without.record_kernels(nullptr, "no libcupti");
  CHECK(without.follow_graphs() == "no libcupti");
  CHECK(without.graphs() == nullptr);
}

TEST_CASE("on a GPU: a replayed graph's kernels are their ops', or there is a reason") {
  if (test::no_gpu()) return;
  std::string why;
  std::unique_ptr<KernelRecorder> recorder = kernel_recorder(why);
  ProfileSession session(parse_window("wait=2,warmup=1,active=2"), Device::cuda);
  session.record_kernels(std::move(recorder), why);
  why = session.follow_graphs();
  if (!why.empty()) {
    std::cout << "skipped: " << why << "\n";
    return;
  }
  const Tensor x = Tensor::full({4096, 512}, DType::f32, Device::cuda, 1);
  StepGraph graph(Device::cuda, true);
  for (int step = 0; step < 5; ++step) {
    session.begins(step);
    graph.run(
        {}, [&] { relu(softmax(x)); }, session.graphs());
    session.ends(step);
  }
  session.finish();
  const Profile p = profile_of(session.tracer());
  CHECK(steps_not_replayed(session.tracer()) == 0);
  CHECK(find(p, "softmax forward").calls == 2);
  CHECK(find(p, "softmax forward").own > 0);
  CHECK(find(p, "relu forward").own > 0);
  for (const KernelRecord& k : session.tracer().kernels()) CHECK(session.tracer().moment_of(k) >= 0);
}
