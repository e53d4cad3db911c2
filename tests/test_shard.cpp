// Shards: what is written comes back, and trains as its source does.
#include <atomic>
#include <thread>

#include "data/catalog.h"
#include "engine/check.h"
#include "tests/shard_files.h"
#include "tests/training.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using doctest::Contains;

TEST_CASE("shard: what is written comes back, each part in its order") {
  const TemporaryFolder folder;
  for (const RecordType type : {RecordType::u8, RecordType::f32})
    for (const bool classes : {true, false}) {
      Dataset data = small_data(type, classes);
      data.encoding = {.columns = {"a", "b\"\n", "ü"}, .mean = {0.1, 1e-300, -3}, .deviation = {1, 2, 1.0 / 3}};
      if (classes) data.encoding.class_names = {"no", "yes", "maybe", ""};
      write_shard(folder / "small.shard", data);
      const Dataset back = open_shard(folder / "small.shard");
      INFO(name(type) << (classes ? ", classes" : ", numbers"));
      CHECK(back.name == "small");
      CHECK(back.shape == "3");
      CHECK(back.features == 3);
      CHECK(back.classes == data.classes);
      CHECK(back.encoding == data.encoding);
      CHECK(back.train == std::vector{0, 1, 2, 3, 4, 5});
      CHECK(back.validation == std::vector{6, 7});
      CHECK(back.test == std::vector{8, 9});
      CHECK(features_of(back, back.train) == features_of(data, data.train));
      CHECK(features_of(back, back.validation) == features_of(data, data.validation));
      CHECK(features_of(back, back.test) == features_of(data, data.test));
      CHECK(features_of(back, {9, 0, 1, 2, 7, 7, 6}) == features_of(data, {6, 9, 2, 4, 8, 8, 3}));  // runs and jumps
      CHECK(Shard(folder / "small.shard").header().type == type);
    }
}

TEST_CASE("shard: a shard of a shard is the same file") {
  const TemporaryFolder folder;
  for (const RecordType type : {RecordType::u8, RecordType::f32}) {
    write_shard(folder / "first", small_data(type, true));
    write_shard(folder / "second", open_shard(folder / "first"));
    CHECK(file_bytes(folder / "first") == file_bytes(folder / "second"));
    write_shard(folder / "first", open_shard(folder / "first"));  // over itself
    CHECK(file_bytes(folder / "first") == file_bytes(folder / "second"));
  }
}

TEST_CASE("shard: training on a shard of the digits gives bitwise the weights of training on the digits") {
  const TemporaryFolder folder;
  write_shard(folder / "digits.shard", load_dataset("digits"));
  const std::vector<Setting> options = {{"steps", "80"}, {"hidden", "16"}, {"dropout", "0.1"}, {"threads", "1"}};
  const auto with_data = [&](const std::string& data) {
    std::vector<Setting> all = options;
    all.push_back({"data", data});
    return test::trained_weights(all);
  };
  const std::vector<double> weights = with_data("digits");
  CHECK(weights.size() > 1000);
  CHECK(with_data("shard:" + folder / "digits.shard") == weights);
}

TEST_CASE("shard: a model's encoding must be the shard's") {
  const TemporaryFolder folder;
  Dataset data = small_data(RecordType::f32, true);
  data.encoding.mean = {1, 2, 3}, data.encoding.deviation = {1, 1, 1};
  write_shard(folder / "small.shard", data);
  CHECK_NOTHROW(open_shard(folder / "small.shard", &data.encoding));
  const Encoding other;
  CHECK_THROWS_WITH_AS(open_shard(folder / "small.shard", &other),
                       Contains("but those of the model are taken as they are"), Error);
}

TEST_CASE("shard: several threads may read at once") {
  const TemporaryFolder folder;
  const Shard shard(large_shard(folder));
  const std::vector<float> expected = all_of(Shard(folder / "large.shard"));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<float> x(784);
      for (int i = 0; i < 6000; ++i) {
        const int row = (i * 7 + t * 1499) % 6000;
        shard.read(std::vector{row}, x.data());
        wrong += !std::equal(x.begin(), x.end(), expected.begin() + row * 784);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("shard: the content hash is of records, answers and parts, not of the name") {
  const TemporaryFolder folder;
  const auto hash = [&](const auto& change) {
    Dataset data = small_data(RecordType::u8, true);
    change(data);
    write_shard(folder / "x.shard", data);
    return Shard(folder / "x.shard").content_hash();
  };
  const uint64_t plain = hash([](Dataset&) {});
  CHECK(hash([](Dataset& data) { data.name = "other"; }) == plain);
  CHECK(hash([](Dataset& data) { data.pixels[4] ^= 1; }) != plain);
  CHECK(hash([](Dataset& data) { data.labels[4] ^= 1; }) != plain);
  CHECK(hash([](Dataset& data) { data.pixel_scale = 1; }) != plain);
  CHECK(hash([](Dataset& data) { std::swap(data.train[0], data.train[1]); }) != plain);
  CHECK(hash([](Dataset& data) { data.validation.push_back(data.train.back()), data.train.pop_back(); }) != plain);
}

// Fault: more than a shard can hold was written for minutes, renamed over what was there, and then refused by the
// reader.
TEST_CASE("shard: what a reader would refuse is not written, and what was there stays") {
  struct Endless : Records {
    int64_t count() const override { return 10; }
    void read(std::span<const int32_t>, float*) const override { FAIL("nothing is to be read"); }
    uint64_t content_hash() const override { return 0; }
  };
  const TemporaryFolder folder;
  write_shard(folder / "x.shard", small_data(RecordType::u8, true));
  const std::vector<uint8_t> before = file_bytes(folder / "x.shard");
  Dataset data = small_data(RecordType::i32, true);  // it has no numbers of its own
  data.records = std::make_shared<Endless>(), data.features = int64_t(1) << 60;
  CHECK_THROWS_WITH_AS(write_shard(folder / "x.shard", data), Contains("x.shard: 10 records of 1152921504606846976"),
                       Error);
  CHECK(file_bytes(folder / "x.shard") == before);
  CHECK_FALSE(std::filesystem::exists(folder / "x.shard.tmp"));
}
