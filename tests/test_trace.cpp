// The tracer on a clock that the test moves: own times add up to the whole, whatever is nested in what.
#include <atomic>
#include <cmath>
#include <optional>
#include <thread>
#include <utility>

#include "apps/profile_rows.h"
#include "apps/trace_file.h"
#include "engine/emulation/emulated_device.h"
#include "engine/recompute.h"
#include "engine/scope.h"
#include "ops/ops.h"
#include "tests/program.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;

namespace {

struct Traced {                // a step, whose clock moves when the test says so
  double now = 100, tick = 0;  // tick: that each reading takes by itself
  Tracer tracer{Device::cpu, [this] { return now += tick; }};

  template <class F>
  Profile step(const F& work) {
    {
      const Tracer::On on(tracer);
      const Range range("step");
      work();
    }
    tracer.finish();
    return profile_of(tracer);
  }
};

const OpRow& find(const Profile& profile, const std::string& label) {
  for (const OpRow& row : profile.ops)
    if (row.label() == label) return row;
  throw std::runtime_error("no row " + label);
}
const RangeRow& range_of(const Profile& profile, const std::string& name) {
  for (const RangeRow& row : profile.ranges)
    if (row.name == name) return row;
  throw std::runtime_error("no range " + name);
}
double sum(const Profile& profile) {
  double total = profile.between;
  for (const OpRow& row : profile.ops) total += row.own;
  return total;
}
Tensor ones(const Shape& shape) { return Tensor::full(shape, DType::f32, Device::cpu, 1); }

}  // namespace

TEST_CASE("tracer: an op's time goes from the boundary before it to its end, and what no op follows is its range's") {
  Traced t;
  const Tensor x = ones({2, 3});
  const Profile p = t.step([&] {
    t.now += 1;
    const Range forward("forward");
    t.now += 2;  // softmax, as far as the tracer can tell
    softmax(x);
    t.now += 4;
    const Scope scope("part");
    t.now += 8;
    add(x, x);
    t.now += 16;
  });
  CHECK(p.steps == 1);
  CHECK(p.wall == doctest::Approx(31));
  CHECK(sum(p) == doctest::Approx(31));
  CHECK(find(p, "softmax forward").own == doctest::Approx(2));
  CHECK(find(p, "add forward").own == doctest::Approx(8));
  CHECK(p.between == doctest::Approx(21));
  CHECK(range_of(p, "forward").total == doctest::Approx(30));
  CHECK(range_of(p, "forward").own == doctest::Approx(4));
  CHECK(range_of(p, "forward").forward == doctest::Approx(30));
  CHECK(range_of(p, "part").total == doctest::Approx(24));
  CHECK(range_of(p, "part").own == doctest::Approx(16));
  CHECK(find(p, "softmax forward").bytes == 2 * 24);
  CHECK(find(p, "softmax forward").flops == 5 * 6);
}

// Fault B59: a range inside itself was counted once a level: 1074 % of the step.
TEST_CASE("tracer: a range nested ten deep in itself counts its time once, and its calls ten times") {
  for (const bool scopes : {false, true}) {
    Traced t;
    const std::function<void(int)> nest = [&](int deep) {
      if (deep == 0) {
        t.now += 0.1;
        return;
      }
      if (scopes) {
        const Scope scope("f");
        nest(deep - 1);
      } else {
        const Range range("f");
        nest(deep - 1);
      }
    };
    const Profile p = t.step([&] { nest(10); });
    INFO("scopes: " << scopes);
    REQUIRE(p.ranges.size() == 1);
    CHECK(p.ranges[0].name == "f");
    CHECK(p.ranges[0].calls == 10);
    CHECK(p.ranges[0].total == doctest::Approx(0.1));
    CHECK(p.ranges[0].own == doctest::Approx(0.1));
    CHECK(p.ranges[0].share <= 1);
    CHECK(sum(p) == doctest::Approx(p.wall));
  }
}

// Fault: a scope that was open when tracing began closes somebody else's span, or one more than there are.
TEST_CASE("tracer: a scope older than the tracing closes nothing of it") {
  double now = 0;
  Tracer tracer(Device::cpu, [&] { return now; });
  const Tensor x = ones({2});
  std::optional<Tracer::On> on;
  std::optional<Range> step;
  {
    const Scope older("older");
    on.emplace(tracer);
    step.emplace("step");
  }
  CHECK(tracer.within());
  now += 1;
  relu(x);
  step.reset();
  {
    const Scope newer("newer");  // lives longer than the tracing, and closes its own span
    on.reset();
  }
  CHECK_FALSE(tracer.within());
  tracer.finish();
  CHECK(find(profile_of(tracer), "relu forward").own == doctest::Approx(1));
}

TEST_CASE("tracer: ten thousand short ranges add up, and a limit keeps the sum while it drops spans") {
  for (const size_t limit : {size_t{1} << 20, size_t{100}}) {
    double now = 0;
    Tracer tracer(
        Device::cpu, [&] { return now; }, limit);
    const Tensor x = ones({2});
    {
      const Tracer::On on(tracer);
      const Range step("step");
      for (int i = 0; i < 10000; ++i) {
        const Range range("short");
        now += 0.25;
        relu(x);
        now += 0.25;
      }
    }
    tracer.finish();
    const Profile p = profile_of(tracer);
    CHECK(p.wall == doctest::Approx(5000));
    CHECK(sum(p) == doctest::Approx(5000));
    CHECK(tracer.full() == (limit == 100));
    CHECK(tracer.spans().size() <= limit);
    CHECK(tracer.moments().size() <= (tracer.full() ? 10000 + 3 * limit : 30002));  // one for each range of the step
    if (!tracer.full()) CHECK(range_of(p, "short").calls == 10000);
    if (!tracer.full()) CHECK(find(p, "relu forward").own == doctest::Approx(2500));
  }
}

TEST_CASE("tracer: two linear layers are two products forward and three in backward, of their sizes") {
  const Tensor x = ones({4, 5});
  Tensor first = ones({6, 5}), second = ones({3, 6});
  first.require_gradient(), second.require_gradient();
  Traced t;
  const Profile p = t.step([&] {
    Tape tape;
    const Tensor loss = sum(linear(linear(x, first, {}), second, {}));
    tape.backward(loss);
  });
  CHECK(find(p, "gemm forward").calls == 2);
  CHECK(find(p, "gemm backward").calls == 3);  // the first layer's input wants no gradient
  CHECK(find(p, "gemm forward").flops == 2 * 4 * (5 * 6 + 6 * 3));
  CHECK(find(p, "gemm backward").flops == 2 * 4 * (5 * 6 + 2 * 6 * 3));
  CHECK(find(p, "linear forward").calls == 2);
  CHECK(find(p, "linear backward").calls == 2);
  CHECK(find(p, "linear forward").saved == 4 * (4 * 5 + 4 * 6 + 6 * 3));  // both inputs and the second weight
  CHECK(find(p, "sum backward").calls == 1);
}

TEST_CASE("tracer: what recompute runs again is told apart, and its backward from its forward") {
  const Tensor x = ones({4, 5});
  Tensor weight = ones({5, 5});
  weight.require_gradient();
  Traced t;
  t.tick = 1;
  const Profile p = t.step([&] {
    Tape tape;
    const Scope scope("model");
    const auto part = [&](const Tensor& in) {
      const Scope inside("part");
      return tanh(linear(tanh(linear(in, weight, {})), weight, {}));
    };
    const Tensor loss = [&] {
      const Range forward("forward");
      return sum(recompute(std::function<Tensor(const Tensor&)>(part), x));
    }();
    const Range backward("backward");
    tape.backward(loss);
  });
  CHECK(find(p, "gemm forward").calls == 2);
  CHECK(find(p, "gemm again").calls == 2);
  CHECK(find(p, "gemm backward").calls == 3);
  CHECK(find(p, "tanh forward").calls == 2);
  CHECK(find(p, "tanh again").calls == 2);
  CHECK(find(p, "tanh backward").calls == 2);
  CHECK(find(p, "recompute forward").bytes == 0);
  const RangeRow& part = range_of(p, "model.part");
  CHECK(part.again > 0);
  CHECK(part.forward + part.backward + part.again == doctest::Approx(part.total));
  CHECK(range_of(p, "backward").forward == 0);
}

TEST_CASE("tracer: what is saved for backward is let go again, whatever way it is kept") {
  const Tensor x = ones({8, 8});
  Tensor weight = ones({8, 8});
  weight.require_gradient();
  for (const bool again : {false, true}) {
    Traced t;
    int64_t most = 0;
    t.step([&] {
      Tape tape;
      const auto part = [&](const Tensor& in) { return tanh(linear(tanh(linear(in, weight, {})), weight, {})); };
      const Tensor y = again ? recompute(std::function<Tensor(const Tensor&)>(part), x) : part(x);
      tape.backward(sum(y));
    });
    for (const TraceMoment& m : t.tracer.moments()) {
      most = std::max(most, m.saved);
      CHECK(m.saved >= 0);
    }
    CHECK(most > 0);
    CHECK(t.tracer.moments().back().saved == 0);
  }
}

TEST_CASE("tracer: off it keeps nothing, outside of a step neither, and an exception leaves it whole") {
  Traced t;
  const Tensor x = ones({2});
  relu(x);
  {
    const Tracer::On on(t.tracer);
    relu(x);  // in no step
    CHECK(t.tracer.spans().empty());
    t.tracer.open(Span::Kind::range, "step");
    try {
      const Scope scope("deep");
      const Tensor y = linear(ones({2, 3}), ones({4, 5}), {});
    } catch (const Error&) {
      relu(x);
    }
    t.tracer.close_all();
  }
  t.tracer.finish();
  CHECK(profile_of(t.tracer).steps == 1);
  t.tracer.clear();
  CHECK(t.tracer.spans().empty());
  CHECK(t.tracer.moments().empty());
}

// Fault B55: a quote in a range's name made the whole trace unreadable.
TEST_CASE("a trace is strict JSON whatever ranges and threads are called, and names come back as they were") {
  const std::string name = "a\"b\\c\n\t\x01\xc3\xa9";
  Traced t;
  const Tensor x = ones({2, 3});
  t.step([&] {
    const Range range(name);
    const Scope scope(name);
    t.now += 1.5e-6;
    softmax(x);
  });
  const TraceText text = trace_text(t.tracer, name);
  CHECK(text.left_out == 0);
  const Json json = Json::parse(text.json);
  int ranges = 0, threads = 0;
  for (const Json& event : json["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name") threads += event["args"]["name"] == name;
    if (event["ph"] == "X" && event["name"] == name) ++ranges;
    if (event["name"] == "softmax") {
      CHECK(event["ts"] == doctest::Approx(0));
      CHECK(event["dur"] == doctest::Approx(1.5));
      CHECK(event["args"]["where"] == name);
    }
  }
  CHECK(ranges == 2);
  CHECK(threads == 1);
  const TraceText cut = trace_text(t.tracer, name, 300);
  CHECK(cut.left_out > 0);
  CHECK(Json::parse(cut.json)["otherData"]["events_left_out"] == cut.left_out);
  CHECK(cut.json.size() < 1000);
}

TEST_CASE("on a device that runs later an op's time is the device's, and an arrow leads from the host to it") {
  const emulation::LogicalTime logical(emulation::streams());
  Tracer tracer(Device::emulated);
  const Tensor x = Tensor::full({64, 64}, DType::f32, Device::emulated, 1);
  {
    const Tracer::On on(tracer);
    const Range step("step");
    for (int i = 0; i < 3; ++i) softmax(x);
  }
  tracer.finish();
  const Profile p = profile_of(tracer);
  CHECK(p.wall == doctest::Approx(3e-6));  // three kernels
  CHECK(sum(p) == doctest::Approx(3e-6));
  CHECK(find(p, "softmax forward").own == doctest::Approx(3e-6));
  CHECK(find(p, "softmax forward").calls == 3);
  const Json json = Json::parse(trace_text(tracer, "main").json);
  int starts = 0, ends = 0, on_device = 0;
  for (const Json& event : json["traceEvents"]) {
    starts += event["ph"] == "s";
    ends += event["ph"] == "f";
    on_device += event["ph"] == "X" && event["tid"] == 2;
  }
  CHECK(starts == 3);
  CHECK(ends == 3);
  CHECK(on_device == 3);
}

// Fault: what began in a step and ended in a later one stood there from before the trace's begin, across all between.
TEST_CASE("a load that goes on from one step into another has its part in each, and none between") {
  std::atomic<double> now = 1;
  Tracer tracer(Device::cpu, [&] { return now.load(); });
  const auto step = [&](double begin, double end, const std::function<void()>& work) {
    now = begin;
    const Tracer::On on(tracer);
    const Range range("step");
    work();
    now = end;
  };
  std::optional<TracedBeside> load;
  load.emplace("load");  // before anybody traces
  step(10, 12, [] {});
  step(20, 22, [&] {
    now = 21;
    load.reset();
  });
  step(30, 32, [&] { load.emplace("load"); });
  now = 40;
  load.reset();  // after everybody has
  tracer.finish();
  const std::vector<std::pair<double, double>> wanted = {{10, 12}, {20, 21}, {30, 32}};
  REQUIRE(tracer.beside().size() == wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    CHECK(tracer.beside()[i].begin == wanted[i].first);
    CHECK(tracer.beside()[i].end == wanted[i].second);
    CHECK(tracer.beside()[i].thread == 1);
  }
}

TEST_CASE("a trace has a line for each thread that loads beside the step, and for none outside of it") {
  Tracer tracer(Device::cpu);
  const auto load = [] { std::thread([] { const TracedBeside traced("load"); }).join(); };
  load();
  {
    const Tracer::On on(tracer);
    const Range step("step");
    load(), load();
  }
  load();
  tracer.finish();
  REQUIRE(tracer.beside().size() == 2);
  const Json json = Json::parse(trace_text(tracer, "main").json);
  int loads = 0, lines = 0;
  for (const Json& event : json["traceEvents"]) {
    if (event["name"] == "load") {
      ++loads;
      CHECK(event["tid"] >= 3);
      CHECK(event["ts"] >= 0);
    }
    lines += event["name"] == "thread_name";
  }
  CHECK(loads == 2);
  CHECK(lines == 3);
}
