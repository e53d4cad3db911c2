#include "engine/safetensors.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/backend.h"

namespace tapedeck {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");
using Json = nlohmann::ordered_json;
constexpr int format_version = 1;
constexpr size_t length_bytes = 8;
constexpr const char* metadata_key = "__metadata__";

struct Code {
  DType dtype;
  const char* name;
};
constexpr Code codes[] = {
    {DType::f64, "F64"}, {DType::f32, "F32"}, {DType::f16, "F16"}, {DType::bf16, "BF16"}, {DType::i32, "I32"}};

const char* code_of(DType dtype) {
  for (const Code& code : codes)
    if (code.dtype == dtype) return code.name;
  return "?";
}

// A name from a file in a message: quoted, and nothing in it that a terminal obeys.
std::string quoted(const std::string& name) { return Json(name).dump(); }

// The header's JSON. The parser itself would keep the last of two equal names in silence, and nest without end.
Json parse_header(std::string_view text, const std::string& source) {
  std::set<std::string> names, fields;  // of the tensors; of the entry at hand
  const auto watch = [&](int depth, Json::parse_event_t event, Json& key) {
    const bool too_deep = (event == Json::parse_event_t::object_start && depth > 1) ||
                          (event == Json::parse_event_t::array_start && depth > 2);
    CHECK(!too_deep, "{}: its header nests deeper than a safetensors header does", source);
    if (event != Json::parse_event_t::key) return true;
    const auto& name = key.get_ref<const std::string&>();
    if (depth == 1) fields.clear();
    CHECK((depth == 1 ? names : fields).insert(name).second, "{}: {} stands twice in its header", source, quoted(name));
    return true;
  };
  Json header = Json::parse(text, watch, false);
  CHECK(header.is_object(), "{}: its header is not a JSON object: is it a safetensors file?", source);
  return header;
}

// A list of whole numbers that are not negative.
std::vector<int64_t> counts(const Json& entry, const char* field, const std::string& name, const std::string& source) {
  std::vector<int64_t> out;
  bool good = entry.is_object() && entry.contains(field) && entry[field].is_array();
  if (good)
    for (const Json& number : entry[field]) {
      good = good && number.is_number_unsigned() && number.get<uint64_t>() <= INT64_MAX;
      if (good) out.push_back(number.get<int64_t>());
    }
  CHECK(good, "{}: {} of tensor {} is no list of whole numbers from 0 to 2^63 - 1", source, field, quoted(name));
  return out;
}

DType dtype_in(const Json& entry, const std::string& name, const std::string& source) {
  CHECK(entry.is_object() && entry.contains("dtype") && entry["dtype"].is_string(), "{}: tensor {} has no type", source,
        quoted(name));
  const auto& type = entry["dtype"].get_ref<const std::string&>();
  for (const Code& code : codes)
    if (type == code.name) return code.dtype;
  CHECK(false, "{}: tensor {} has type {}, which this version does not read", source, quoted(name), quoted(type));
}

Shape shape_in(const Json& entry, const std::string& name, const std::string& source) {
  const std::vector<int64_t> extents = counts(entry, "shape", name, source);
  CHECK(std::ssize(extents) <= Shape::max_rank, "{}: tensor {} has {} extents, this version reads up to {}", source,
        quoted(name), extents.size(), Shape::max_rank);
  Shape shape;
  for (const int64_t extent : extents) {
    CHECK(extent == 0 || shape.count() <= INT64_MAX / 16 / extent, "{}: tensor {} has more elements than any file",
          source, quoted(name));
    shape.push(extent);
  }
  return shape;
}

struct Entry {
  std::string name;
  DType dtype;
  Shape shape;
  uint64_t begin, end;  // among the bytes of numbers
};

Entry read_entry(const std::string& name, const Json& entry, uint64_t all, const std::string& source) {
  const DType dtype = dtype_in(entry, name, source);
  const Shape shape = shape_in(entry, name, source);
  const uint64_t bytes = static_cast<uint64_t>(shape.count()) * size_of(dtype);
  const std::vector<int64_t> offsets = counts(entry, "data_offsets", name, source);
  CHECK(offsets.size() == 2, "{}: data_offsets of tensor {} has {} numbers, needs 2", source, quoted(name),
        offsets.size());
  const uint64_t begin = static_cast<uint64_t>(offsets[0]), end = static_cast<uint64_t>(offsets[1]);
  CHECK(begin <= end && end <= all && end - begin == bytes,
        "{}: tensor {} of {} bytes cannot lie at {} to {} of the file's {} bytes of numbers: is the file cut short?",
        source, quoted(name), bytes, begin, end, all);
  return {name, dtype, shape, begin, end};
}

// Every byte belongs to exactly one tensor.
void check_cover(const std::vector<Entry>& entries, uint64_t all, const std::string& source) {
  std::vector<std::pair<uint64_t, uint64_t>> places;
  for (const Entry& entry : entries) places.emplace_back(entry.begin, entry.end);
  std::sort(places.begin(), places.end());
  uint64_t covered = 0;
  for (const auto& [begin, end] : places) {
    CHECK(begin == covered, "{}: its tensors {} at byte {} of the numbers", source,
          begin < covered ? "overlap" : "leave a gap", std::min(begin, covered));
    covered = end;
  }
  CHECK(covered == all, "{}: {} bytes follow its last tensor, where the file should end", source, all - covered);
}

Metadata read_metadata(const Json& entry, const std::string& source) {
  CHECK(entry.is_object(), "{}: its {} is no JSON object", source, metadata_key);
  Metadata out;
  for (const auto& [key, value] : entry.items()) {
    CHECK(value.is_string(), "{}: {} in its {} is no text", source, quoted(key), metadata_key);
    out[key] = value.get<std::string>();
  }
  if (const auto found = out.find("format_version"); found != out.end()) {
    const std::string& said = found->second;
    int version = 0;
    const auto [end, error] = std::from_chars(said.data(), said.data() + said.size(), version);
    CHECK(error == std::errc() && end == said.data() + said.size() && version >= 1 && version <= format_version,
          "{}: format version {}, this program reads 1 to {}: use a newer tapedeck", source, quoted(said),
          format_version);
  }
  return out;
}

}  // namespace

std::string to_safetensors(const std::vector<NamedTensor>& tensors, const Metadata& metadata) {
  Json header;
  Metadata all = metadata;
  all["format"] = "pt", all["format_version"] = std::to_string(format_version);
  header[metadata_key] = all;
  uint64_t end = 0;
  for (const auto& [name, t] : tensors) {
    CHECK(!header.contains(name), "safetensors: two tensors are named {}; give each its own name", name);
    std::vector<int64_t> extents;
    for (int axis = 0; axis < t.rank(); ++axis) extents.push_back(t.shape[axis]);
    header[name] = {{"dtype", code_of(t.dtype)}, {"shape", extents}, {"data_offsets", {end, end + t.bytes()}}};
    end += t.bytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the numbers are aligned
  const uint64_t length = text.size();
  std::string out(length_bytes, '\0');
  out.reserve(length_bytes + length + end);
  std::memcpy(out.data(), &length, length_bytes);
  out += text;
  for (const auto& [name, t] : tensors) {
    const size_t at = out.size();
    out.resize(at + t.bytes());
    backend(t.device()).copy(out.data() + at, t.data.begin(), t.bytes());
  }
  return out;
}

Safetensors read_safetensors(std::string_view bytes, const std::string& source) {
  uint64_t length = 0;
  CHECK(bytes.size() >= length_bytes, "{}: {} bytes are too few for a safetensors file", source, bytes.size());
  std::memcpy(&length, bytes.data(), length_bytes);
  CHECK(length <= bytes.size() - length_bytes,
        "{}: the header promises {} bytes, the file has {}: is it a safetensors file?", source, length, bytes.size());
  const Json header = parse_header(bytes.substr(length_bytes, length), source);
  const std::string_view numbers = bytes.substr(length_bytes + length);
  Safetensors out;
  std::vector<Entry> entries;
  for (const auto& [name, entry] : header.items()) {
    if (name == metadata_key)
      out.metadata = read_metadata(entry, source);
    else
      entries.push_back(read_entry(name, entry, numbers.size(), source));
  }
  check_cover(entries, numbers.size(), source);
  for (const Entry& entry : entries) {  // together they need no more memory than the file
    const Tensor t = Tensor::empty(entry.shape, entry.dtype, Device::cpu);
    backend(Device::cpu).copy(t.data.begin(), numbers.data() + entry.begin, t.bytes());
    out.tensors.emplace_back(entry.name, t);
  }
  return out;
}

std::vector<NamedTensor> from_safetensors(std::string_view bytes, const std::string& source) {
  return read_safetensors(bytes, source).tensors;
}

}  // namespace tapedeck
