// Shards. The first byte says which checksums are made to agree, so that the fuzzer sees what lies behind them.
#include <zlib.h>

#include "data/shard.h"
#include "data/shard_writer.h"
#include "tests/fuzz/fuzz.h"

using namespace tapedeck;

namespace {

enum : uint8_t { repair_header = 1, repair_metadata = 2, repair_blocks = 4, repair_all = 7 };

uint32_t checksum(const std::string& file, uint64_t begin, uint64_t end) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(file.data() + begin), end - begin));
}

void put(std::string& file, uint64_t at, uint32_t value) { std::memcpy(file.data() + at, &value, sizeof value); }

void repair(std::string& file, uint8_t which) {
  ShardHeader header;
  if (file.size() < sizeof header) return;
  std::memcpy(&header, file.data(), sizeof header);
  if (which & repair_header) header.crc = crc(header);
  std::memcpy(file.data(), &header, sizeof header);
  if (!accepts([&] { check(header, file.size(), "file"); })) return;
  const ShardLayout at = layout(header);
  if (which & repair_metadata) put(file, at.records - 4, checksum(file, at.metadata, at.records - 4));
  if (which & repair_blocks)
    for (uint64_t block = 0; block < at.blocks(); ++block) {
      const uint64_t begin = at.records + block * shard_block, end = std::min(begin + shard_block, at.table);
      put(file, at.table + 4 * block, checksum(file, begin, end));
    }
}

std::string shard_of(const Dataset& data) {
  const std::string path = "/tmp/tapedeck-fuzz-" + std::to_string(getpid()) + ".shard";
  write_shard(path, data);
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  unlink(path.c_str());
  return bytes;
}

}  // namespace

std::vector<std::string> seeds() {
  Dataset bytes{.name = "bytes", .shape = "2", .features = 2, .classes = 2};
  Dataset floats{.name = "floats", .shape = "2", .features = 2};
  for (int32_t row = 0; row < 6; ++row) {
    bytes.pixels.insert(bytes.pixels.end(), {static_cast<uint8_t>(row), 255});
    bytes.labels.push_back(row % 2);
    floats.values.insert(floats.values.end(), {static_cast<float>(row), -1});
    floats.targets.push_back(static_cast<float>(row));
  }
  floats.encoding = {.columns = {"a", "b"}, .mean = {1, 2}, .deviation = {1, 1}};
  std::vector<std::string> out;
  for (Dataset* data : {&bytes, &floats}) {
    data->train = {0, 1, 2, 3}, data->validation = {4}, data->test = {5};
    for (const char which : {'\0', static_cast<char>(repair_all)}) out.push_back(which + shard_of(*data));
  }
  return out;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string bytes(bytes_of(data + 1, size - 1));
  repair(bytes, data[0]);
  const MemoryFile file(bytes);
  accepts([&] { Shard(file.path()).verify(); });
  Dataset set;
  if (!accepts([&] { set = open_shard(file.path()); })) return 0;
  std::vector<float> features(static_cast<size_t>(set.features));
  for (int32_t row = 0; row < set.rows(); ++row) accepts([&] { set.records->read({&row, 1}, features.data()); });
  promise(accepts([&] { open_shard(file.path(), &set.encoding); }), "its own encoding fits");
  return 0;
}
