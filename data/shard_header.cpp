#include "data/shard_header.h"

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "data/byte_count.h"
#include "data/checksum.h"
#include "data/encoding.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "shards are little-endian; this machine would have to swap");

constexpr uint64_t most_records = std::numeric_limits<int32_t>::max();  // row numbers are int32

// A number of the header may lie, so sizes are added up where nothing overflows.
using Wide = unsigned __int128;
Wide promised_bytes(const ShardHeader& h) {
  const Wide data = Wide(h.records) * h.features * size_of(h.type) + Wide(h.records) * answer_bytes;
  const Wide blocks = (data + shard_block - 1) / shard_block;
  return sizeof(ShardHeader) + Wide(h.metadata_bytes) + sizeof(uint32_t) + data + blocks * sizeof(uint32_t);
}

std::vector<double> finite_numbers(const Json& list, const char* what, std::string_view file) {
  const auto numbers = list.get<std::vector<double>>();
  for (const double x : numbers) CHECK(std::isfinite(x), "{}: its {} holds {}; convert it again", file, what, x);
  return numbers;
}

}  // namespace

const char* name(RecordType type) { return type == RecordType::u8 ? "u8" : type == RecordType::f32 ? "f32" : "i32"; }

size_t size_of(RecordType type) { return type == RecordType::u8 ? 1 : 4; }

uint32_t crc(const ShardHeader& header) { return crc32_of(&header, offsetof(ShardHeader, crc)); }

ShardLayout layout(const ShardHeader& h) {
  ShardLayout at;
  at.metadata = sizeof(ShardHeader);
  at.records = at.metadata + h.metadata_bytes + sizeof(uint32_t);
  at.answers = at.records + h.records * h.features * size_of(h.type);
  at.table = at.answers + h.records * answer_bytes;
  at.end = at.table + at.blocks() * sizeof(uint32_t);
  return at;
}

void check(const ShardHeader& h, uint64_t file_bytes, std::string_view file) {
  const ShardHeader ours;
  CHECK(std::equal(h.magic, h.magic + 8, ours.magic), "{}: is not a shard: does not begin with TAPEDECK", file);
  CHECK(h.version <= ours.version,
        "{}: is a shard of format version {}, but this program reads up to {}; convert it again, or update tapedeck",
        file, h.version, ours.version);
  CHECK(h.version > 0 && h.crc == crc(h), "{}: the header does not match its checksum; convert it again", file);
  CHECK(h.type <= RecordType::i32, "{}: record type {} is unknown; convert it again", file, uint16_t(h.type));
  CHECK(h.answers != Answers::none, "{}: holds a text and no answers; train on the text itself, text:FILE", file);
  CHECK(h.answers <= Answers::numbers, "{}: kind of answers {} is unknown; convert it again", file,
        uint16_t(h.answers));
  CHECK(h.records > 0 && h.features > 0, "{}: holds nothing: {} records of {} numbers", file, h.records, h.features);
  CHECK(h.records <= most_records, "{}: has {} records, but a shard may have {}", file, grouped(h.records),
        grouped(most_records));
  CHECK(Wide(h.train) + h.validation + h.test == h.records,
        "{}: header says {} records, but its parts have {}, {} and {}; convert it again", file, h.records, h.train,
        h.validation, h.test);
  const Wide promised = promised_bytes(h);
  CHECK(promised <= std::numeric_limits<int64_t>::max(),
        "{}: {} records of {} numbers are more than any file holds; convert it again", file, h.records, h.features);
  CHECK(promised == file_bytes, "{}: header promises {} bytes, file has {}: {}; copy or convert it again", file,
        grouped(uint64_t(promised)), grouped(file_bytes), file_bytes < promised ? "cut short" : "something was added");
}

std::string to_json(const ShardMetadata& m) try {
  Json out = {{"name", m.name}, {"shape", m.shape}, {"pixel_scale", m.pixel_scale}, {"classes", m.classes}};
  out["columns"] = m.encoding.columns;
  out["mean"] = m.encoding.mean;
  out["deviation"] = m.encoding.deviation;
  out["class_names"] = m.encoding.class_names;
  return out.dump();
} catch (const Json::exception&) {
  throw Error(text("{}: its name, columns or classes are no valid UTF-8, which a shard needs; rename them", m.name));
}

ShardMetadata parse_metadata(std::string_view json, std::string_view file) try {
  const Json in = Json::parse(json);
  ShardMetadata m;
  m.name = in.at("name");
  m.shape = in.at("shape");
  const double scale = in.at("pixel_scale");
  const int64_t classes = in.at("classes").is_number_integer() ? in.at("classes").get<int64_t>() : -1;
  CHECK(std::abs(scale) <= std::numeric_limits<float>::max(), "{}: its pixel_scale is {}; convert it again", file,
        scale);
  CHECK(classes >= 0 && classes <= most_classes, "{}: has {} classes, but a shard may have 0 to {}", file,
        in.at("classes").dump(), most_classes);
  m.pixel_scale = static_cast<float>(scale);
  m.classes = static_cast<int>(classes);
  m.encoding.columns = in.at("columns");
  m.encoding.mean = finite_numbers(in.at("mean"), "mean", file);
  m.encoding.deviation = finite_numbers(in.at("deviation"), "deviation", file);
  m.encoding.class_names = in.at("class_names");
  return m;
} catch (const Json::exception&) {
  throw Error(text("{}: its metadata cannot be read: is not what a shard holds; convert it again", file));
}

}  // namespace tapedeck
