// Shards that are damaged, cut, or something else altogether: found, and named.
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "engine/check.h"
#include "tests/message_of.h"
#include "tests/shard_files.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#include "tests/mentions.h"

using namespace tapedeck;
using doctest::Contains;
using test::message_of;

namespace {

using Bytes = std::vector<uint8_t>;

// With another header, and the checksum that fits it.
Bytes with_header(Bytes bytes, const auto& change) {
  ShardHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  change(header);
  header.crc = crc(header);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

}  // namespace

// Fault: a damaged file was taken as data.
TEST_CASE("shard: any bit flipped anywhere is found when the file is read") {
  const TemporaryFolder folder;
  const std::string path = folder / "small.shard";
  for (const bool classes : {true, false}) {
    write_shard(path, small_data(RecordType::u8, classes));
    const Bytes whole = file_bytes(path);
    REQUIRE(whole.size() > 200);
    for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      Bytes changed = whole;
      changed[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      folder.write("changed", changed);
      INFO("bit " << bit % 8 << " of byte " << bit / 8 << " of " << whole.size());
      CHECK_THROWS_AS(all_of(Shard(folder / "changed")), Error);
      CHECK_THROWS_AS(Shard(folder / "changed").verify(), Error);
    }
  }
}

// Fault: a file cut by a full disk was taken as a shorter data set.
TEST_CASE("shard: a file cut at any byte, or longer than it should be, is refused with both sizes") {
  const TemporaryFolder folder;
  write_shard(folder / "small.shard", small_data(RecordType::f32, true));
  const Bytes whole = file_bytes(folder / "small.shard");
  for (size_t n = 0; n < whole.size(); ++n) {
    folder.write("cut", Bytes(whole.begin(), whole.begin() + static_cast<long>(n)));
    INFO(n << " of " << whole.size() << " bytes");
    const std::string message = message_of([&] { Shard(folder / "cut"); });
    CHECK(mentions(message, {std::to_string(n), std::to_string(n < 64 ? 64 : whole.size())}));
  }
  Bytes longer = whole;
  longer.push_back(0);
  CHECK_THROWS_WITH_AS(Shard(folder.write("longer", longer)), Contains("something was added"), Error);
}

TEST_CASE("shard: what is no shard, or a newer one, is refused in a sentence") {
  const TemporaryFolder folder;
  write_shard(folder / "small.shard", small_data(RecordType::f32, true));
  const Bytes whole = file_bytes(folder / "small.shard");
  const auto message = [&](const Bytes& bytes) { return message_of([&] { Shard(folder.write("x.shard", bytes)); }); };
  CHECK_THROWS_WITH_AS(Shard(folder / "none"), Contains("none: cannot be opened: No such file"), Error);
  CHECK_THROWS_WITH_AS(Shard(folder.path()), Contains("is not a file"), Error);
  CHECK(message(Bytes(100, 'x')).find("x.shard: is not a shard") == 0);
  CHECK(mentions(message(with_header(whole, [](ShardHeader& h) { h.version = 2; })),
                 {"format version 2, but this program reads up to 1"}));

  // A header that lies with a fitting checksum: no size of it may be believed, or allocated.
  const uint64_t large[] = {0, 1, uint64_t(1) << 31, uint64_t(1) << 33, uint64_t(1) << 62, ~uint64_t(0)};
  for (const uint64_t n : large) {
    INFO(n);
    CHECK(message(with_header(whole, [&](ShardHeader& h) { h.records = h.train = n, h.validation = h.test = 0; })) !=
          "nothing was thrown");
    CHECK(message(with_header(whole, [&](ShardHeader& h) { h.features = n; })) != "nothing was thrown");
    CHECK(message(with_header(whole, [&](ShardHeader& h) { h.train += n / 2 + 1; })) != "nothing was thrown");
    CHECK(message(with_header(whole, [&](ShardHeader& h) { h.metadata_bytes ^= uint32_t(n) | 1; })) !=
          "nothing was thrown");
  }
  CHECK(mentions(message(with_header(whole, [](ShardHeader& h) { h.type = RecordType(9); })), {"record type 9"}));
  CHECK(mentions(message(with_header(whole, [](ShardHeader& h) { h.answers = Answers(9); })), {"answers 9"}));
  CHECK(
      mentions(message(with_header(whole, [](ShardHeader& h) { h.answers = Answers::none; })), {"train on the text"}));
  CHECK(message(with_header(whole, [](ShardHeader& h) { h.answers = Answers::numbers; })) != "nothing was thrown");
}

TEST_CASE("shard: metadata of the wrong kind is refused in a sentence") {
  const std::string good = to_json({.name = "a", .shape = "3", .classes = 2});
  CHECK(parse_metadata(good, "x").classes == 2);
  const auto with = [&](const std::string& old, const std::string& now) {
    std::string json = good;
    REQUIRE(json.find(old) != json.npos);
    return json.replace(json.find(old), old.size(), now);
  };
  for (const std::string& json :
       {std::string(), std::string("{}"), std::string(100000, '['), with("\"classes\":2", "\"classes\":2000000000"),
        with("\"classes\":2", "\"classes\":-1"), with("\"classes\":2", "\"classes\":2.5"),
        with("\"pixel_scale\":1.0", "\"pixel_scale\":1e300"), with("\"mean\":[]", "\"mean\":[null]"),
        with("\"columns\":[]", "\"columns\":{\"a\":1}"), with("\"name\":\"a\"", "\"name\":3")})
    CHECK_THROWS_WITH_AS(parse_metadata(json, "x.shard"), Contains("x.shard: "), Error);
  CHECK_THROWS_WITH_AS(to_json({.name = "\xff\xfe"}), Contains("no valid UTF-8"), Error);
}

// Fault: one damaged record was read as data, or ended the run without a word of where.
TEST_CASE("shard: a damaged record is named, and the others still read") {
  const TemporaryFolder folder;
  const std::string path = large_shard(folder);
  Bytes bytes = file_bytes(path);
  const uint64_t records = layout(Shard(path).header()).records;
  bytes[records + 5000 * 784 + 3] ^= 1;
  const Shard shard(folder.write("images.shard", bytes));
  std::vector<float> x(784);
  CHECK_NOTHROW(shard.read(std::vector{10}, x.data()));
  // Block 59 begins at byte 59 * 65,536 of the records: in record 4,931 of 784 bytes.
  const char* expected =
      "images.shard: record 5000 is damaged: block 59 (records 4931 to 5015) does not match its checksum";
  for (int again = 0; again < 2; ++again)
    CHECK_THROWS_WITH_AS(shard.read(std::vector{5000}, x.data()), Contains(expected), Error);
  CHECK_THROWS_WITH_AS(shard.read(std::vector{7, 4940, 20}, x.data()), Contains("record 4940 is damaged"), Error);
  CHECK_THROWS_WITH_AS(shard.verify(), Contains("1 of 73 blocks do not match their checksums: block 59 ("), Error);
  CHECK_THROWS_WITH_AS(shard.read(std::vector{6000}, x.data()), Contains("no record 6000, it has 0 to 5999"), Error);
  CHECK_THROWS_WITH_AS(shard.read(std::vector{-1}, x.data()), Contains("no record -1"), Error);

  bytes = file_bytes(path);
  bytes[records + 6000 * 784 + 7] ^= 1;
  CHECK_THROWS_WITH_AS(Shard(folder.write("images.shard", bytes)), Contains("its table of answers is damaged"), Error);
}

TEST_CASE("shard: a file cut or deleted during the run") {
  const TemporaryFolder folder;
  const std::string path = large_shard(folder);
  std::vector<float> x(784);
  const Shard shard(path);
  shard.read(std::vector{5999}, x.data());
  REQUIRE(truncate(path.c_str(), 1000000) == 0);
  CHECK_NOTHROW(shard.read(std::vector{5}, x.data()));
  CHECK_THROWS_WITH_AS(shard.read(std::vector{4000}, x.data()), Contains("large.shard: record"), Error);
  CHECK_THROWS_WITH_AS(shard.read(std::vector{5999}, x.data()), Contains("large.shard: record 5999 is gone"), Error);
  std::filesystem::remove(path);
  CHECK_NOTHROW(shard.read(std::vector{6}, x.data()));  // an open file outlives its name
}
