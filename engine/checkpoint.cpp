#include "engine/checkpoint.h"

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/backend.h"

namespace tapedeck {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");
using Json = nlohmann::ordered_json;
constexpr int format_version = 1;
constexpr size_t length_bytes = 8;

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

// One entry of the header as a tensor, its numbers copied from `data`.
Tensor read_tensor(const std::string& name, const Json& entry, std::string_view data, const std::string& source) {
  const std::string type = entry.at("dtype");
  const Code* code = nullptr;
  for (const Code& known : codes)
    if (type == known.name) code = &known;
  CHECK(code != nullptr, "{}: tensor {} has type {}, which this version does not read", source, name, type);
  Shape shape;
  for (const int64_t extent : entry.at("shape").get<std::vector<int64_t>>()) shape.push(extent);
  const auto place = entry.at("data_offsets").get<std::vector<uint64_t>>();
  const uint64_t bytes = static_cast<uint64_t>(shape.count()) * size_of(code->dtype);
  CHECK(place.size() == 2 && place[0] <= place[1] && place[1] <= data.size() && place[1] - place[0] == bytes,
        "{}: tensor {} of {} bytes does not lie inside the file's {} bytes of numbers: is the file cut short?", source,
        name, bytes, data.size());
  Tensor t = Tensor::empty(shape, code->dtype, Device::cpu);
  backend(Device::cpu).copy(t.data.begin(), data.data() + place[0], bytes);
  return t;
}

}  // namespace

std::string to_safetensors(const std::vector<NamedTensor>& tensors) {
  Json header;
  header["__metadata__"] = {{"format", "pt"}, {"format_version", std::to_string(format_version)}};
  uint64_t end = 0;
  for (const auto& [name, t] : tensors) {
    std::vector<int64_t> extents;
    for (int axis = 0; axis < t.rank(); ++axis) extents.push_back(t.shape[axis]);
    header[name] = {{"dtype", code_of(t.dtype)}, {"shape", extents}, {"data_offsets", {end, end + t.bytes()}}};
    end += t.bytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the numbers are aligned
  const uint64_t length = text.size();
  std::string out(length_bytes, '\0');
  std::memcpy(out.data(), &length, length_bytes);
  out += text;
  for (const auto& [name, t] : tensors) {
    const size_t at = out.size();
    out.resize(at + t.bytes());
    backend(t.device()).copy(out.data() + at, t.data.begin(), t.bytes());
  }
  return out;
}

std::vector<NamedTensor> from_safetensors(std::string_view bytes, const std::string& source) {
  uint64_t length = 0;
  CHECK(bytes.size() >= length_bytes, "{}: {} bytes are too few for a safetensors file", source, bytes.size());
  std::memcpy(&length, bytes.data(), length_bytes);
  CHECK(length <= bytes.size() - length_bytes,
        "{}: the header promises {} bytes, the file has {}: is it a safetensors file?", source, length, bytes.size());
  const Json header = Json::parse(bytes.substr(length_bytes, length), nullptr, false);
  CHECK(header.is_object(), "{}: its header is not JSON: is it a safetensors file?", source);
  std::vector<NamedTensor> tensors;
  try {
    for (const auto& [name, entry] : header.items()) {
      if (name != "__metadata__") {
        tensors.emplace_back(name, read_tensor(name, entry, bytes.substr(length_bytes + length), source));
        continue;
      }
      const int version = std::stoi(entry.value("format_version", std::to_string(format_version)));
      CHECK(version <= format_version, "{}: format version {}, this program reads up to {}: use a newer tapedeck",
            source, version, format_version);
    }
  } catch (const nlohmann::json::exception& e) {
    CHECK(false, "{}: its header is not a safetensors header ({})", source, e.what());
  } catch (const std::logic_error&) {
    CHECK(false, "{}: its format version is not a number that fits", source);
  }
  return tensors;
}

}  // namespace tapedeck
