// The batches that a run trains on: the same numbers whoever loads them, and from wherever a run goes on.
#include "apps/feed.h"

#include <filesystem>

#include "engine/backend.h"
#include "tests/program.h"
#include "tests/shard_files.h"
#include "tests/training.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using doctest::Contains;

namespace {

struct Numbers {
  std::vector<double> x, answer;
  bool operator==(const Numbers&) const = default;
};

Numbers copy_of(const Inputs& inputs) { return {inputs.x.doubles(), inputs.answer.doubles()}; }
Numbers next_of(Feed& feed) {
  feed.next();
  return copy_of(feed.inputs());
}

Problem blobs(const char* loss = "cross_entropy", Device device = Device::cpu, DType dtype = DType::f32) {
  return Problem(configure("train", {{"data", "blobs"}, {"loss", loss}}), device, dtype);
}

// 6,000 training records of 784 bytes, 83.6 to a block that shares a checksum; 100 more validate and 100 test.
std::string training_shard(const TemporaryFolder& folder) {
  Dataset data{.name = "train", .shape = "28x28x1", .features = 784, .classes = 10, .pixel_scale = 1.0f / 255};
  for (int row = 0; row < 6200; ++row) {
    for (int i = 0; i < 784; ++i) data.pixels.push_back(static_cast<uint8_t>(row * 31 + i * i));
    data.labels.push_back(row % 10);
    (row < 6000 ? data.train : row < 6100 ? data.validation : data.test).push_back(row);
  }
  write_shard(folder / "train.shard", data);
  return folder / "train.shard";
}

Problem shard_problem(const std::string& path) {
  return Problem(configure("train", {{"data", "shard:" + path}}), Device::cpu, DType::f32);
}

// A log that cuts a file short when the first line arrives.
class Cutting : public std::streambuf {
 public:
  explicit Cutting(std::string path) : path_(std::move(path)) {}

 private:
  int sync() override { return std::filesystem::resize_file(path_, 200000), 0; }
  int overflow(int c) override { return c == EOF ? 0 : c; }
  std::streamsize xsputn(const char*, std::streamsize n) override { return n; }

  const std::string path_;
};

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
          const Inputs loaded = problem.load(loader.next());
          const Numbers expected{loaded.x.doubles(), loaded.answer.doubles()};
          for (Feed* feed : {&none, &one, &four}) {
            CHECK(feed->next() == count);
            const Inputs inputs = feed->inputs();
            CHECK(inputs.x.shape == Shape{count, 2});
            CHECK(inputs.answer.shape == loaded.answer.shape);
            CHECK(inputs.x.dtype == dtype);
            CHECK(inputs.answer.dtype == loaded.answer.dtype);
            CHECK(inputs.x.device() == device);
            CHECK(copy_of(inputs) == expected);
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
    const Numbers one = next_of(straight);
    all.insert(all.end(), one.x.begin(), one.x.end());
  }
  for (const int workers : {0, 1, 4})
    for (const int64_t given : {1, 320, 3199, 3200}) {
      INFO(workers << " workers, " << given << " examples given");
      Feed feed(problem, 300, 8, {given / 3200, given % 3200}, workers, 3);
      for (int64_t at = given; at + 300 < 4000;) {
        const int64_t count = feed.next();
        CHECK(std::equal(all.begin() + 2 * at, all.begin() + 2 * (at + count), copy_of(feed.inputs()).x.begin()));
        at += count;
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

TEST_CASE("data in memory has no workers unless asked for, data in a file has one") {
  const TemporaryFolder folder;
  CHECK(default_workers(blobs()) == 0);
  CHECK(default_workers(shard_problem(training_shard(folder))) == 1);
}

// Fault: a run's weights depend on the number of workers.
TEST_CASE("a run on a shard ends with bitwise the same weights with 0, 1 and 4 workers") {
  const TemporaryFolder folder;
  const std::string data = "shard:" + training_shard(folder);
  const auto weights = [&](const char* workers) {
    return test::trained_weights({{"data", data},
                                  {"hidden", "8"},
                                  {"batch", "700"},
                                  {"steps", "14"},
                                  {"accumulate", "2"},
                                  {"prefetch", "3"},
                                  {"workers", workers},
                                  {"threads", "1"}});
  };
  const std::vector<double> expected = weights("0");
  CHECK(expected.size() > 6000);
  CHECK(weights("1") == expected);
  CHECK(weights("4") == expected);
}

// Fault: an exception in a loading thread ended that thread, or the program, and the run waited for ever.
TEST_CASE("a run ends with the file and the record when a worker meets a damaged one") {
  const TemporaryFolder folder;
  const std::string path = training_shard(folder);
  std::vector<uint8_t> bytes = file_bytes(path);
  const size_t records = bytes.size() - 4 * ((6200 * 788 + 65535) / 65536) - 6200 * 788;  // where they begin
  bytes[records + 5000 * 784 + 100] ^= 1;
  folder.write("train.shard", bytes);
  std::string without_workers;
  for (const std::string workers : {"0", "1", "4"}) {
    const test::Outcome run = test::tapedeck({"train", "--data", "shard:" + path, "--hidden", "8", "--epochs", "1",
                                              "--workers", workers, "--out", folder / workers, "--quiet"});
    INFO(workers << " workers: " << run.err);
    CHECK(run.code == exit_failed);
    for (const char* part : {"train.shard: record ", "block 59 (records 4931 to 5015)"})
      CHECK(test::contains(run.err, part));
    if (without_workers.empty()) without_workers = run.err;
    CHECK(run.err == without_workers);  // at the same batch, whoever loads
  }
}

// Fault: the same for a file that changes during the run.
TEST_CASE("a run ends with the file and the record when a worker finds the file cut short") {
  const TemporaryFolder folder;
  for (const std::string workers : {"0", "1", "4"}) {
    const std::string path = training_shard(folder);
    Cutting log(path);
    test::Training training({{"data", "shard:" + path},
                             {"hidden", "8"},
                             {"batch", "16"},
                             {"epochs", "9"},
                             {"log-every", "2"},
                             {"workers", workers}},
                            &log);
    INFO(workers << " workers");
    try {
      training.trainer.run();
      FAIL("the run went on without its data");
    } catch (const Error& e) {
      INFO(std::string(e.what()));
      for (const char* part : {"train.shard: record ", "is gone"}) CHECK(test::contains(e.what(), part));
    }
  }
}

TEST_CASE("workers go on with a file that is deleted while they have it open") {
  const TemporaryFolder folder;
  const std::string path = training_shard(folder);
  const Problem problem = shard_problem(path);
  Loader loader(problem.data().train, 500, 5);
  Feed feed(problem, 500, 5, {}, 2, 1);
  for (int i = 0; i < 20; ++i) {
    CHECK(next_of(feed).x == problem.load(loader.next()).x.doubles());
    if (i == 0) std::filesystem::remove(path);
  }
}
