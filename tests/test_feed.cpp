// The batches that a run trains on: the same numbers whoever loads them, and from wherever a run goes on.
#include "apps/feed.h"

#include "engine/backend.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;

namespace {

struct Numbers {
  std::vector<double> x, answer;
  bool operator==(const Numbers&) const = default;
};

Numbers copy_of(const Feed::Fed& fed) { return {fed.inputs.x.doubles(), fed.inputs.answer.doubles()}; }

Problem blobs(const char* loss = "cross_entropy", Device device = Device::cpu, DType dtype = DType::f32) {
  return Problem(configure("train", {{"data", "blobs"}, {"loss", loss}}), device, dtype);
}

}  // namespace

// Fault: a batch differs with the number of workers: the rest of an epoch, another type, numbers to predict.
TEST_CASE("batches are bitwise the same with 0, 1 and 4 workers, on every device, in every type, the short ones too") {
  for (const Device device : {Device::cpu, Device::emulated})
    for (const DType dtype : {DType::f32, DType::f64})
      for (const char* loss : {"cross_entropy", "mse"}) {
        INFO(name(device) << ", " << name(dtype) << ", " << loss);
        const Problem problem = blobs(loss, device, dtype);
        Loader loader(problem.data().train, 1000, 5);
        Feed none(problem, 1000, 5, {}, 0, 2), one(problem, 1000, 5, {}, 1, 2), four(problem, 1000, 5, {}, 4, 1);
        for (const int64_t count : {1000, 1000, 1000, 200, 1000}) {  // of 3,200 rows
          const Inputs loaded = problem.load(loader.next().rows);
          const Numbers expected{loaded.x.doubles(), loaded.answer.doubles()};
          for (Feed* feed : {&none, &one, &four}) {
            const Feed::Fed& fed = feed->next();
            CHECK(fed.count == count);
            CHECK(fed.inputs.x.shape == Shape{count, 2});
            CHECK(fed.inputs.answer.shape == loaded.answer.shape);
            CHECK(fed.inputs.x.dtype == dtype);
            CHECK(fed.inputs.answer.dtype == loaded.answer.dtype);
            CHECK(fed.inputs.x.device() == device);
            CHECK(copy_of(fed) == expected);
            CHECK(feed->load_seconds() > 0);
          }
        }
      }
}

// Fault: what workers had loaded ahead when a run stopped is skipped when it goes on.
TEST_CASE("from a position on, workers feed what a straight run has left, in batches of another size too") {
  const Problem problem = blobs();
  Feed straight(problem, 1, 8, {}, 0, 2);
  std::vector<double> all;
  for (int i = 0; i < 4000; ++i) {
    const Numbers one = copy_of(straight.next());
    all.insert(all.end(), one.x.begin(), one.x.end());
  }
  for (const int workers : {0, 1, 4})
    for (const int64_t given : {1, 320, 3199, 3200}) {
      INFO(workers << " workers, " << given << " examples given");
      Feed feed(problem, 300, 8, {given / 3200, given % 3200}, workers, 3);
      for (int64_t at = given; at + 300 < 4000;) {
        const Feed::Fed& fed = feed.next();
        CHECK(std::equal(all.begin() + 2 * at, all.begin() + 2 * (at + fed.count), copy_of(fed).x.begin()));
        at += fed.count;
      }
    }
}

TEST_CASE("a feed takes memory for its batches once, and workers give it back at any moment") {
  const Problem problem = blobs();
  const Arena& arena = backend(Device::cpu).arena();
  const size_t before = arena.use().bytes, batch = 100 * (2 * sizeof(float) + sizeof(int32_t));
  for (const int workers : {0, 1, 3}) {
    Feed feed(problem, 100, 1, {}, workers, 2);
    for (int i = 0; i < 40; ++i) {
      CHECK(arena.use().bytes == before + (2 * workers + 1) * batch);
      feed.next();
    }
  }
  CHECK(arena.use().bytes == before);
}

TEST_CASE("data in memory has no workers unless asked for") { CHECK(default_workers(blobs()) == 0); }
