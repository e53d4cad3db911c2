// Times of a device that tells of each kernel: to whom they belong, and what they come to in a profile and its trace.
#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <memory>

#include "apps/profile_report.h"
#include "apps/profile_session.h"
#include "apps/trace_file.h"
#include "apps/what_if.h"
#include "engine/gpu.h"
#include "engine/kernel_times.h"
#include "engine/trace.h"
#include "ops/ops.h"
#include "tests/gpu.h"
#include "tests/program.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using tapedeck::test::contains;

namespace {

// Records that the test makes up, by the marks that the tracer asked for.
class MadeUp final : public KernelRecorder {
 public:
  std::string start() override {
    ++starts;
    return refuses;
  }
  std::vector<KernelRecord> take() override { return std::exchange(next, {}); }
  void stop() noexcept override { ++stops; }
  void push(uint64_t mark) noexcept override {
    marks.push_back(mark);
    ++open;
  }
  void pop() noexcept override { --open; }

  std::string refuses;
  std::vector<KernelRecord> next;
  std::vector<uint64_t> marks;
  int open = 0, starts = 0, stops = 0;
};

// One that answers a trial as the test says.
class Trial final : public KernelRecorder {
 public:
  using Records = std::function<std::vector<KernelRecord>(uint64_t mark)>;
  explicit Trial(Records records, int* running = nullptr) : records_(std::move(records)), running_(running) {}
  std::string start() override {
    if (running_) ++*running_;
    return "";
  }
  std::vector<KernelRecord> take() override { return records_(mark_); }
  void stop() noexcept override {
    if (running_) --*running_;
  }
  void push(uint64_t mark) noexcept override { mark_ = mark; }
  void pop() noexcept override {}

 private:
  const Records records_;
  int* const running_;
  uint64_t mark_ = 0;
};

int64_t steady_now() { return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

constexpr int64_t s = 1'000'000'000;  // the clock of these tests counts seconds

KernelRecord kernel(uint64_t mark, double begin, double end, const char* name = "k", uint32_t correlation = 0) {
  return {.name = name,
          .begin = std::llround(begin * s),
          .end = std::llround(end * s),
          .stream = 7,
          .correlation = correlation,
          .mark = mark};
}

struct Traced {
  double now = 100;
  MadeUp recorder;
  Tracer tracer{Device::cpu, [this] { return now; }};
  Traced() { tracer.record_kernels(&recorder); }

  template <class F>
  void step(const F& work) {
    const Tracer::On on(tracer);
    const Range range("step");
    work();
  }
  uint64_t mark(size_t i) const { return recorder.marks.at(i); }
  Profile profile() {
    tracer.take_kernels();
    tracer.finish();
    return profile_of(tracer);
  }
};

const OpRow& find(const Profile& profile, const std::string& label) {
  for (const OpRow& row : profile.ops)
    if (row.label() == label) return row;
  throw std::runtime_error("no row " + label);
}
double sum(const Profile& profile) {
  double total = profile.between + profile.idle;
  for (const OpRow& row : profile.ops) total += row.own;
  return total;
}
Tensor ones() { return Tensor::full({2, 3}, DType::f32, Device::cpu, 1); }

}  // namespace

TEST_CASE("kernel times: each instant has one owner, and shares and gaps add up") {
  // 0: a kernel, 1: one on another stream over its end, 0 again: a copy over all of it, then a gap, then nobody's.
  const std::vector<DeviceWork> works = {
      {10, 30, 0, true}, {20, 50, 1, true}, {0, 60, 0, false}, {80, 90, -1, true}, {85, 88, 1, false}};
  const Shares shares = share_out(works, 0, 100, 2);
  CHECK(shares.of_owner == std::vector<int64_t>{20 + 10 + 10, 20 + 3});  // the copy has 0 to 10 and 50 to 60
  CHECK(shares.of_nobody == 7);
  CHECK(shares.gaps == std::vector<std::pair<int64_t, int64_t>>{{60, 80}, {90, 100}});
}

TEST_CASE("kernel times: what lies outside of the time shared out counts only within it") {
  const Shares shares =
      share_out({{-5, 5, 0, true}, {95, 200, 0, true}, {300, 400, 0, true}, {7, 7, 0, true}}, 0, 100, 1);
  CHECK(shares.of_owner[0] == 10);
  CHECK(shares.gaps == std::vector<std::pair<int64_t, int64_t>>{{5, 95}});
  CHECK(share_out({}, 3, 8, 0).gaps == std::vector<std::pair<int64_t, int64_t>>{{3, 8}});
  CHECK(share_out({}, 8, 8, 0).gaps.empty());
}

TEST_CASE("tracer by kernels: an op's time is that of what was asked for in it, wherever the device got to it") {
  Traced t;
  t.step([&] {
    t.now = 101;
    softmax(ones());  // asked for before its end: by the first mark
    t.now = 102;
    add(ones(), ones());
    t.now = 103;
  });
  REQUIRE(t.recorder.marks.size() == 4);  // begin of the step, two ops, its end
  CHECK(t.recorder.open == 0);            // what is asked for behind the step is not its
  t.recorder.next = {kernel(t.mark(0), 100.5, 102.5), kernel(t.mark(1), 103, 104), kernel(t.mark(1), 106, 109),
                     kernel(t.mark(2), 109, 110), kernel(99999, 110, 110.25)};
  const Profile p = t.profile();
  CHECK(p.by_kernels);
  CHECK(find(p, "softmax forward").own == doctest::Approx(2));
  CHECK(find(p, "add forward").own == doctest::Approx(4));
  CHECK(p.between == doctest::Approx(1));  // asked for behind add, and an unknown mark does not lengthen the step
  CHECK(p.idle == doctest::Approx(0.5 + 0.5 + 2));  // before the first, between, and in the middle of add
  CHECK(p.wall == doctest::Approx(10));
  CHECK(sum(p) == doctest::Approx(p.wall));
  CHECK(contains(op_table(p, {}, 10), "idle: device waits for the host"));
  CHECK(profile_json(p, {})["idle_ms"] == doctest::Approx(3000));
  const std::vector<Win> wins = possible_wins(p, {}, {}, true);
  CHECK(wins[0].name == "graph");
  CHECK(wins[0].seconds == doctest::Approx(3));
}

TEST_CASE("tracer by kernels: what the device waits for its batch is the data's time, and no idleness") {
  Traced t;
  t.step([&] {
    {
      const Range data("data");
      t.now = 104;
    }
    relu(ones());
    t.now = 105;
  });
  t.recorder.next = {kernel(t.mark(1), 102, 103), kernel(t.mark(2), 104.5, 106)};
  const Profile p = t.profile();
  CHECK(find(p, "data").own == doctest::Approx(3 + 1));
  CHECK(find(p, "data").total == doctest::Approx(4));
  CHECK(find(p, "relu forward").own == doctest::Approx(1.5));
  CHECK(p.idle == doctest::Approx(0.5));
  CHECK(p.wall == doctest::Approx(6));
  CHECK(sum(p) == doctest::Approx(p.wall));
}

TEST_CASE("tracer by kernels: work that no span asked for is in no op, and steps keep their own records") {
  Traced t;
  for (int i = 0; i < 2; ++i) {
    t.now = 100 + 100 * i;
    t.step([&] {
      t.now += 1;
      relu(ones());
      t.now += 9;
    });
    const double begin = 100 + 100 * i;
    t.recorder.next = {kernel(0, begin + 4, begin + 6), kernel(t.mark(0 + 3 * i), begin + 1, begin + 5),
                       kernel(0, begin + 50, begin + 60)};
    t.tracer.take_kernels();
  }
  t.tracer.finish();
  const Profile p = profile_of(t.tracer);
  CHECK(p.steps == 2);
  CHECK(p.wall == doctest::Approx(20));
  CHECK(find(p, "relu forward").own == doctest::Approx(8));
  CHECK(p.between == doctest::Approx(2));  // of the two seconds of each one is relu's
  CHECK(p.idle == doctest::Approx(10));
  t.tracer.clear(2, 3);  // the second step goes, and with it its records
  CHECK(t.tracer.kernels().size() == 3);
  t.tracer.clear();
  CHECK(t.tracer.kernels().empty());
}

TEST_CASE("a trace by kernels has a line for each stream, and arrows from the call to the kernel by its correlation") {
  Traced t;
  t.step([&] {
    t.now = 101;
    softmax(ones());
    t.now = 102;
  });
  KernelRecord called = kernel(t.mark(0), 101.5, 103, "Softmax\"Forward", 41);
  called.asked = std::llround(100.5 * s);
  KernelRecord copy = kernel(t.mark(0), 101, 102, "copy", 42);
  copy.kind = KernelRecord::Kind::copy, copy.stream = 8, copy.graph_node = 5;
  t.recorder.next = {called, copy, kernel(0, 103, 104, "a stranger's", 43)};
  t.profile();
  const Json json = Json::parse(trace_text(t.tracer, "main").json);
  std::map<std::string, int> line;  // by the name of what is on it
  std::map<int, double> from, to;   // by correlation
  std::vector<std::string> streams;
  for (const Json& event : json["traceEvents"]) {
    const std::string phase = event["ph"];
    if (phase == "X") line[event["name"]] = event["tid"];
    if (phase == "s") from[event["id"]] = event["ts"];
    if (phase == "f") {
      to[event["id"]] = event["ts"];
      CHECK(event["tid"] == (event["id"] == 41 ? line["Softmax\"Forward"] : line["copy"]));
    }
    if (phase == "X" && event["name"] == "copy") CHECK(event["args"]["graph_node"] == 5);
    if (phase == "X" && event["name"] == "Softmax\"Forward") CHECK(event["dur"] == doctest::Approx(1.5e6));
    if (event["name"] == "thread_name") streams.push_back(event["args"]["name"]);
  }
  CHECK(streams == std::vector<std::string>{"main", "cpu, stream 7", "cpu, stream 8"});
  CHECK(line["softmax"] == 1);  // the op is on the host's line alone
  CHECK(line["Softmax\"Forward"] == line["a stranger's"]);
  CHECK(line["copy"] != line["a stranger's"]);
  CHECK(from == std::map<int, double>{{41, 0.5e6}, {42, 0}});  // the copy's call is not known: where its op begins
  CHECK(to == std::map<int, double>{{41, 1.5e6}, {42, 1e6}});
}

// What a recorder delivers is believed only if a trial's kernel comes back as it was asked for.
TEST_CASE("profile: a recorder that fails its trial is let go, and the reason is kept") {
  const auto with = [](auto&& prepare) {
    auto session = std::make_unique<ProfileSession>(parse_window("active=1"), Device::cpu);
    session->record_kernels(std::make_unique<Trial>(prepare));
    return session;
  };
  const auto good = with([&](uint64_t mark) {
    return std::vector<KernelRecord>{{.begin = steady_now(), .end = steady_now(), .mark = mark}};
  });
  CHECK(good->why_events() == "");
  CHECK(good->times() == "cupti");
  CHECK(good->tracer().by_kernels());
  const auto none = with([](uint64_t) { return std::vector<KernelRecord>{}; });
  CHECK(contains(none->why_events(), "recorded nothing"));
  CHECK_FALSE(none->tracer().by_kernels());
  CHECK(contains(with([&](uint64_t) {
                   return std::vector<KernelRecord>{{.begin = steady_now(), .end = steady_now()}};
                 })->why_events(),
                 "asked for by"));
  CHECK(contains(with([&](uint64_t mark) {
                   return std::vector<KernelRecord>{
                       {.begin = steady_now() + 5 * s, .end = steady_now() + 6 * s, .mark = mark}};
                 })->why_events(),
                 "not those of the host"));
  auto refusing = std::make_unique<MadeUp>();
  refusing->refuses = "another profiler has it";
  ProfileSession session(parse_window("active=1"), Device::cpu);
  session.record_kernels(std::move(refusing));
  CHECK(session.why_events() == "another profiler has it");
  ProfileSession without(parse_window("active=1"), Device::cpu);
  without.record_kernels(nullptr, "no libcupti");
  CHECK(without.why_events() == "no libcupti");
}

TEST_CASE("profile: nothing is recorded outside of a window's steps") {
  int running = 0;
  ProfileSession session(parse_window("wait=1,warmup=1,active=1,repeat=2"), Device::cpu);
  const auto answer = [](uint64_t mark) {
    return std::vector<KernelRecord>{{.begin = steady_now(), .end = steady_now() + 1, .mark = mark}};
  };
  session.record_kernels(std::make_unique<Trial>(answer, &running));
  CHECK(running == 0);  // after its trial
  std::vector<int> recording;
  for (int step = 0; step < 7; ++step) {
    session.begins(step);
    recording.push_back(running);
    relu(ones());
    session.ends(step);
  }
  CHECK(recording == std::vector<int>{0, 1, 1, 0, 1, 1, 0});
  CHECK(running == 0);
  session.finish();
  CHECK(session.steps() == std::vector<int64_t>{2, 5});
  CHECK(session.tracer().kernels().size() == 2);  // those of the warm-up are gone
}

TEST_CASE("on a GPU: CUPTI tells of each kernel, or there is a reason, and times add up either way") {
  if (test::no_gpu()) return;
  std::string why;
  std::unique_ptr<KernelRecorder> recorder = kernel_recorder(why);
  ProfileSession session(parse_window("wait=1,warmup=1,active=2"), Device::cuda);
  session.record_kernels(std::move(recorder), why);
  const Tensor x = Tensor::full({4096, 512}, DType::f32, Device::cuda, 1);
  for (int step = 0; step < 4; ++step) {
    session.begins(step);
    for (int i = 0; i < 5; ++i) softmax(x);
    session.ends(step);
  }
  session.finish();
  const Profile p = profile_of(session.tracer());
  CHECK(p.steps == 2);
  CHECK(find(p, "softmax forward").calls == 10);
  CHECK(find(p, "softmax forward").own > 0);
  CHECK(sum(p) == doctest::Approx(p.wall));
  CHECK((session.times() == "cupti") == session.why_events().empty());
  if (session.times() != "cupti") {
    std::cout << "skipped: " << session.why_events() << "\n";
    return;
  }
  int kernels = 0;
  for (const KernelRecord& k : session.tracer().kernels())
    kernels += contains(k.name, "Softmax") && session.tracer().moment_of(k) >= 0;
  CHECK(kernels == 10);
  CHECK(p.idle >= 0);
}
