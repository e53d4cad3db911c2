// What stands at the front of a shard: 64 bytes of fixed layout, then what is known of the data as JSON. shard.h draws
// the whole file.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "data/dataset.h"

namespace tapedeck {

enum class RecordType : uint16_t { u8, f32, i32 };
const char* name(RecordType type);  // "u8"
size_t size_of(RecordType type);    // in bytes

enum class Answers : uint16_t { none, classes, numbers };  // classes: int32 ids; numbers: float; none: is refused
inline constexpr size_t answer_bytes = 4;

struct ShardHeader {
  char magic[8] = {'T', 'A', 'P', 'E', 'D', 'E', 'C', 'K'};
  uint32_t version = 1;
  RecordType type = RecordType::u8;
  Answers answers = Answers::none;
  uint64_t records = 0, features = 0;            // and numbers in each of them
  uint64_t train = 0, validation = 0, test = 0;  // records of each part; they lie in this order
  uint32_t metadata_bytes = 0;
  uint32_t crc = 0;  // of the 60 bytes before it
};
static_assert(sizeof(ShardHeader) == 64);
uint32_t crc(const ShardHeader& header);  // what its last field should be

inline constexpr uint64_t shard_block = 1 << 16;  // bytes that share a checksum; the last block may be shorter

// Where the parts of the file begin, in bytes.
struct ShardLayout {
  uint64_t metadata, records, answers, table, end;
  uint64_t blocks() const { return (table - records + shard_block - 1) / shard_block; }
};
ShardLayout layout(const ShardHeader& header);  // of a header that has been checked

// Throws Error, beginning with file, unless every field makes sense and the sizes add up to file_bytes.
void check(const ShardHeader& header, uint64_t file_bytes, std::string_view file);

struct ShardMetadata {
  std::string name = {}, shape = {};  // as in Dataset
  float pixel_scale = 1;              // u8 records: value = byte * pixel_scale
  int classes = 0;
  Encoding encoding = {};
};
std::string to_json(const ShardMetadata& metadata);
ShardMetadata parse_metadata(std::string_view json, std::string_view file);  // throws Error, beginning with file

}  // namespace tapedeck
