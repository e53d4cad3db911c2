// Batches on a device: copied there beside the step, or gathered there out of a data set that lives there.
#include "apps/feed.h"

#include "engine/emulation/emulated_device.h"
#include "engine/launch.h"
#include "engine/step_graph.h"
#include "tests/gpu.h"
#include "tests/settings.h"
#include "tests/training.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

namespace tapedeck {

namespace {

constexpr int64_t features = 33;

// Rows whose every number names them: row r holds r + j / 64 at place j, as floats or, with r + j, as bytes.
Dataset named_rows(int64_t rows, bool pixels) {
  Dataset data{.name = "named", .shape = "33", .features = features, .classes = 10, .pixel_scale = 1.0f / 255};
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t j = 0; j < features; ++j)
      if (pixels)
        data.pixels.push_back(static_cast<uint8_t>(row + j));
      else
        data.values.push_back(static_cast<float>(row) + static_cast<float>(j) / 64);
    data.labels.push_back(static_cast<int32_t>(row % 10));
    (row % 10 == 0 ? data.validation : row % 10 == 1 ? data.test : data.train).push_back(static_cast<int32_t>(row));
  }
  return data;
}

struct Advance {
  int64_t* at;
  int64_t by;
  HD void operator()(int64_t) const { *at += by; }
};
struct Cursor {  // examples given so far, where a step finds it
  Cursor(Device device, int64_t at) : memory(device, sizeof at) { backend(device).copy(ptr(), &at, sizeof at); }
  int64_t* ptr() const { return static_cast<int64_t*>(memory.begin()); }
  void advance(int64_t by) const { each(memory.device(), 1, Advance{ptr(), by}); }
  Storage memory;
};

// What a run of `steps` batches saw, the host waiting for nothing but what the feed waits for: each step copies its
// batch into a log on the device.
struct Seen {
  std::vector<double> x, answer;
  bool operator==(const Seen&) const = default;
};
Seen log_of(Feed& feed, const Problem& problem, const Cursor* cursor, int64_t batch, int steps, bool graph) {
  const Inputs log = problem.empty(batch * steps);
  fill(log.x, -1);
  fill(log.answer, -1);
  const Device device = problem.device();
  StepGraph step_graph(device, graph);
  const Inputs latest = problem.empty(batch);
  int64_t at = 0;
  for (int i = 0; i < steps; ++i) {
    const int64_t count = feed.next();
    const Inputs now = first_rows(latest, count), place = first_rows(log, at + count);
    step_graph.run({count, feed.place()}, [&] {
      const Inputs inputs = feed.inputs();
      copy(now.x, inputs.x);
      copy(now.answer, inputs.answer);
      if (cursor) cursor->advance(count);
    });
    const auto put = [&](const Tensor& all, const Tensor& part) {
      const size_t bytes = part.bytes(), end = all.bytes();
      backend(device).copy(static_cast<char*>(all.data.begin()) + end - bytes, part.data.begin(), bytes);
    };
    put(place.x, now.x);
    put(place.answer, now.answer);
    at += count;
  }
  const Inputs whole = first_rows(log, at);
  return {whole.x.doubles(), whole.answer.doubles()};
}

Seen expected(const Problem& problem, int64_t batch, int steps) {
  Loader loader(problem.data().train, batch, 5);
  Seen seen;
  for (int i = 0; i < steps; ++i) {
    const Inputs inputs = problem.load(loader.next());
    const std::vector<double> x = inputs.x.doubles(), answer = inputs.answer.doubles();
    seen.x.insert(seen.x.end(), x.begin(), x.end());
    seen.answer.insert(seen.answer.end(), answer.begin(), answer.end());
  }
  return seen;
}

// Whether 14 batches of 40 are what `all` says, however they come to the device.
void check_whole(const Problem& problem, const Seen& all, bool graph) {
  for (const int workers : {0, 2}) {
    Feed copied(problem, 40, 5, {}, workers, 2);
    CHECK(log_of(copied, problem, nullptr, 40, 14, graph) == all);
  }
  const Cursor cursor(problem.device(), 0);
  Feed gathered(problem, 40, 5, {}, 0, 2, cursor.ptr());
  CHECK(log_of(gathered, problem, &cursor, 40, 14, graph) == all);
}

}  // namespace

// Fault: a step computes on a batch that is half the old and half the new one, because the copy of the next batch
// overtook it or had not come yet.
TEST_CASE("every batch arrives whole on a device, copied or gathered, with slow kernels and a fast loader") {
  for (const bool pixels : {false, true})
    for (const bool regression : {false, true})
      for (const DType dtype : {DType::f32, DType::f64}) {
        const Problem problem(named_rows(230, pixels), regression, Device::emulated, dtype);
        const Seen all = expected(problem, 40, 14);  // 184 rows: 4 whole batches and one of 24 an epoch
        for (const emulation::Mode mode : {emulation::Mode::eager, emulation::Mode::lazy})
          for (const emulation::Order order : {emulation::Order::forward, emulation::Order::reverse})
            for (const bool graph : {false, true}) {
              INFO("pixels " << pixels << ", regression " << regression << ", " << name(dtype) << ", lazy "
                             << (mode == emulation::Mode::lazy) << ", graph " << graph);
              const emulation::UseMode use(mode);
              const test::LaneOrder in_order(order);
              check_whole(problem, all, graph);
            }
      }
}

TEST_CASE("on a GPU: every batch arrives whole, copied or gathered") {
  if (test::no_gpu()) return;
  for (const bool pixels : {false, true}) {
    const Problem problem(named_rows(230, pixels), false, Device::cuda, DType::f32);
    const Seen all = expected(problem, 40, 14);
    for (const bool graph : {false, true}) check_whole(problem, all, graph);
  }
}

TEST_CASE("a gathered feed goes on from the middle of an epoch") {
  const Problem problem(named_rows(230, true), false, Device::emulated, DType::f32);
  const Seen all = expected(problem, 40, 10);
  const Cursor cursor(problem.device(), 184 + 80);
  Feed feed(problem, 40, 5, {1, 80}, 0, 2, cursor.ptr());
  const Seen rest = log_of(feed, problem, &cursor, 40, 3, false);
  CHECK(std::equal(rest.x.begin(), rest.x.end(), all.x.begin() + (184 + 80) * features));
}

TEST_CASE("a data set that takes more than a quarter of the device's memory is copied batch by batch") {
  const Problem problem(named_rows(230, false), false, Device::emulated, DType::f32);
  Arena& arena = backend(problem.device()).arena();
  CHECK(DeviceData::fits(problem));
  arena.limit(230 * features * sizeof(float) * 4 - 1);
  CHECK_FALSE(DeviceData::fits(problem));
  arena.limit(arena.capacity());
  CHECK_FALSE(DeviceData::fits(Problem(named_rows(230, false), false, Device::cpu, DType::f32)));
}

}  // namespace tapedeck
