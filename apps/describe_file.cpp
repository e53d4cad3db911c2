// What a file is and what it holds, told by its content.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>

#include "apps/describe_data.h"
#include "data/csv_reader.h"
#include "data/idx.h"
#include "data/npy.h"
#include "data/packed_file.h"
#include "data/text.h"
#include "data/utf8.h"
#include "engine/check.h"
#include "engine/safetensors.h"

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

// Records of two fields or more, the first ones of equal length.
bool looks_like_csv(const std::string& path) try {
  CsvReader reader(path);
  size_t fields = 0, records = 0;
  for (; records < 3 && reader.next(); ++records) {
    if (records > 0 && reader.fields().size() != fields) return false;
    fields = reader.fields().size();
  }
  return fields >= 2 && records >= 2;
} catch (const Error&) {
  return false;
}

// The beginning of a text may end within a character.
bool looks_like_text(std::string_view front) {
  for (size_t cut = 0; cut < 4 && cut < front.size(); ++cut)
    if (is_utf8(front.substr(0, front.size() - cut))) return front.find('\0') == front.npos;
  return false;
}

bool looks_like_safetensors(std::string_view front, uint64_t file_bytes) {
  uint64_t header_bytes;
  if (front.size() < 9 || front[8] != '{') return false;
  std::memcpy(&header_bytes, front.data(), sizeof header_bytes);
  return header_bytes <= file_bytes - 8;
}

Json npy_json(const std::string& path) {
  const Npy array = read_npy(path);
  Json out = {{"kind", "NumPy array"}, {"type", array.descr}, {"shape", array.shape}, {"numbers", array.count()}};
  if (array.count() == 0) return out;
  double low = array.at(0), high = low;
  for (int64_t i = 1; i < array.count(); ++i) low = std::min(low, array.at(i)), high = std::max(high, array.at(i));
  out["range"] = {low, high};
  return out;
}

Json idx_json(const std::string& path) {
  uint8_t magic[4] = {};
  PackedFile(path).read(magic, sizeof magic);
  const bool labels = magic[3] == 1;
  const Idx idx = labels ? read_idx_labels(path) : read_idx_images(path);
  Json out = {{"kind", labels ? "IDX labels" : "IDX images"}, {"type", "u8"}, {"shape", idx.extents}};
  if (!labels) {
    const auto [low, high] = std::minmax_element(idx.bytes.begin(), idx.bytes.end());
    out["range"] = {*low, *high};
    return out;
  }
  std::map<int, int64_t> counts;
  for (const uint8_t label : idx.bytes) ++counts[label];
  out["classes"] = counts.size();
  for (const auto& [label, count] : counts) out["class_counts"][std::to_string(label)] = count;
  return out;
}

Json safetensors_json(const std::string& path) {
  PackedFile file(path);
  const std::vector<uint8_t> bytes = read_rest(file);
  const Safetensors all = read_safetensors({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file.name());
  Json out = {{"kind", "safetensors weights"}};
  int64_t numbers = 0;
  for (const auto& [name, tensor] : all.tensors) numbers += tensor.shape.count();
  out["numbers"] = numbers;
  for (const auto& [name, tensor] : all.tensors)
    out["tensors"][name] = std::string(tapedeck::name(tensor.dtype)) + " " + tensor.shape.str();
  for (const auto& [name, value] : all.metadata) out["metadata"][name] = value;
  return out;
}

Json text_json(const std::string& path) {
  const Text text = read_text(path);
  return {{"kind", "text"},
          {"characters", text.tokens.size()},
          {"vocabulary", text.vocabulary.size()},
          {"different", text.vocabulary.str()},
          {"begins", text.vocabulary.decode(std::span(text.tokens).first(std::min<size_t>(text.tokens.size(), 40)))}};
}

}  // namespace

Json shard_json(const Shard& shard) {
  const ShardHeader& header = shard.header();
  Json out = {{"kind", "shard"},
              {"name", shard.metadata().name},
              {"type", name(header.type)},
              {"records", header.records},
              {"numbers_each", header.features}};
  if (shard.metadata().classes > 0) out["classes"] = shard.metadata().classes;
  out["splits"] = {{"train", header.train}, {"validation", header.validation}, {"test", header.test}};
  return out;
}

std::string verified(const Shard& shard) {
  shard.verify();
  return text("all {} blocks good", shard.blocks());
}

std::string file_kind(const std::string& path) {
  PackedFile file(path);
  std::string front(1 << 16, '\0');
  front.resize(file.read(reinterpret_cast<uint8_t*>(front.data()), front.size()));
  if (front.empty()) throw Error(text("{}: is empty", path));
  if (front.starts_with("TAPEDECK")) return "shard";
  if (front.starts_with("\x93NUMPY")) return "npy";
  if (front.starts_with(std::string("\0\0\x08", 3))) return "idx";
  if (looks_like_safetensors(front, fs::file_size(path))) return "safetensors";
  if (looks_like_csv(path)) return "csv";
  if (looks_like_text(front)) return "text";
  throw Error(text("{}: is neither a shard, nor safetensors, IDX, .npy, CSV or text in UTF-8", path));
}

Json file_json(const std::string& path, const std::string& kind) {
  Json out = {{"file", path}, {"bytes", fs::file_size(path)}};
  if (kind == "npy") out.update(npy_json(path));
  if (kind == "idx") out.update(idx_json(path));
  if (kind == "safetensors") out.update(safetensors_json(path));
  if (kind == "text") out.update(text_json(path));
  return out;
}

}  // namespace tapedeck
