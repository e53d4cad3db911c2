#include "apps/npz.h"

#include <cstring>

#include "data/checksum.h"
#include "data/npy.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

constexpr uint16_t version_needed = 20, utf8_names = 1 << 11, stored = 0;
constexpr uint16_t midnight = 0, first_of_1980 = 1 << 5 | 1;  // ZIP's earliest day: the bytes shall not tell the time
constexpr uint64_t local_bytes = 30, central_bytes = 46, end_bytes = 22;

struct Member {
  std::string name;  // "layer/weight.npy"
  std::string npy_header;
  Tensor tensor;
  uint64_t size() const { return npy_header.size() + tensor.shape.count() * item_bytes(); }
  uint64_t item_bytes() const { return tensor.dtype == DType::bf16 ? sizeof(float) : size_of(tensor.dtype); }
};

Member member(const std::string& name, const Tensor& t) {
  std::vector<int64_t> extents;
  for (int axis = 0; axis < t.rank(); ++axis) extents.push_back(t.shape[axis]);
  return {name + ".npy", npy_header(npy_type(t.dtype), extents), t};
}

template <class... Number>  // little-endian, one after another
void put(std::string& out, Number... numbers) {
  (out.append(reinterpret_cast<const char*>(&numbers), sizeof numbers), ...);
}

void put_elements(std::string& out, const Tensor& t) {
  const Tensor host = t.to(Device::cpu);
  if (t.dtype != DType::bf16) {
    out.append(reinterpret_cast<const char*>(host.data.begin()), host.bytes());
    return;
  }
  const Bfloat16* values = host.ptr<Bfloat16>();
  for (int64_t i = 0; i < host.shape.count(); ++i) put(out, static_cast<float>(values[i]));
}

// What the local header and the central directory both say of a member.
void put_common(std::string& out, const Member& m, uint32_t crc) {
  const auto size = static_cast<uint32_t>(m.size());
  put(out, version_needed, utf8_names, stored, midnight, first_of_1980, crc, size, size,
      static_cast<uint16_t>(m.name.size()), uint16_t{0});
}

}  // namespace

const char* npy_type(DType dtype) {
  switch (dtype) {
    case DType::f64: return "<f8";
    case DType::f16: return "<f2";
    case DType::i32: return "<i4";
    case DType::f32:
    case DType::bf16: break;
  }
  return "<f4";
}

std::string to_npz(const std::vector<NamedTensor>& tensors) {
  std::vector<Member> members;
  uint64_t bytes = end_bytes;
  for (const auto& [name, t] : tensors) {
    members.push_back(member(name, t));
    const Member& m = members.back();
    CHECK(m.name.size() <= UINT16_MAX, "npz: a name of {} bytes is too long", m.name.size());
    bytes += m.size() + local_bytes + central_bytes + 2 * m.name.size();
  }
  CHECK(bytes <= UINT32_MAX && members.size() < UINT16_MAX,
        "npz: {} arrays of together {} bytes exceed plain ZIP (65534 files, 4294967295 bytes): read the .safetensors "
        "file instead",
        members.size(), bytes);

  std::string out, directory;
  out.reserve(bytes);
  for (const Member& m : members) {
    const auto offset = static_cast<uint32_t>(out.size());
    std::string content = m.npy_header;
    put_elements(content, m.tensor);
    const uint32_t crc = crc32_of(content.data(), content.size());
    out += "PK\3\4";
    put_common(out, m, crc);
    out += m.name + content;

    directory += "PK\1\2";
    put(directory, version_needed);  // and made by the same
    put_common(directory, m, crc);
    const uint16_t no_comment = 0, first_disk = 0, no_text = 0;
    const uint32_t attributes = 0;
    put(directory, no_comment, first_disk, no_text, attributes, offset);
    directory += m.name;
  }
  const auto count = static_cast<uint16_t>(members.size());
  const auto start = static_cast<uint32_t>(out.size()), length = static_cast<uint32_t>(directory.size());
  out += directory + "PK\5\6";
  put(out, uint16_t{0}, uint16_t{0}, count, count, length, start, uint16_t{0});
  return out;
}

}  // namespace tapedeck
