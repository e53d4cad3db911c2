#include "data/npy.h"

#include <bit>
#include <cstring>

#include "data/packed_file.h"
#include "data/utf8.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

static_assert(std::endian::native == std::endian::little, "npy.cpp copies little-endian numbers as they are");

constexpr const char* known_types = "|u1 |i1 <u2 <i2 <u4 <i4 <u8 <i8 <f4 <f8 |b1";
constexpr size_t longest_header = 1 << 16, most_axes = 32;

template <class T>
double load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

using Load = double (*)(const uint8_t*);
Load loader_of(std::string_view descr) {
  const struct {
    std::string_view descr;
    Load load;
  } loaders[] = {{"|u1", load<uint8_t>},
                 {"|i1", load<int8_t>},
                 {"<u2", load<uint16_t>},
                 {"<i2", load<int16_t>},
                 {"<u4", load<uint32_t>},
                 {"<i4", load<int32_t>},
                 {"<u8", load<uint64_t>},
                 {"<i8", load<int64_t>},
                 {"<f4", load<float>},
                 {"<f8", load<double>},
                 {"|b1", [](const uint8_t* at) { return double(*at != 0); }}};
  for (const auto& loader : loaders)
    if (loader.descr == descr) return loader.load;
  return nullptr;
}

std::string extents(std::span<const int64_t> shape) {
  std::string text;
  for (const int64_t extent : shape) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

// The dictionary, and how many bytes stand before the elements.
std::pair<NpyHeader, uint64_t> read_header(PackedFile& file) {
  uint8_t fixed[12] = {};
  const size_t got = file.read(fixed, 8);
  CHECK(got == 8 && std::memcmp(fixed, "\x93NUMPY", 6) == 0,
        "{}: is no .npy file: it does not begin with 93 'NUMPY' and a version; save the array by numpy.save",
        file.name());
  const int version = fixed[6];
  CHECK(version >= 1 && version <= 3 && fixed[7] == 0, "{}: .npy version {}.{} is not known, wants 1.0, 2.0 or 3.0",
        file.name(), version, fixed[7]);
  const size_t length_bytes = version == 1 ? 2 : 4;
  CHECK(file.read(fixed + 8, length_bytes) == length_bytes, "{}: cut short within its header; fetch it again",
        file.name());
  const size_t length = fixed[8] | fixed[9] << 8 | fixed[10] << 16 | size_t(fixed[11]) << 24;
  CHECK(length <= longest_header, "{}: a header of {} bytes, wants at most {}; is the file damaged?", file.name(),
        length, longest_header);
  std::string dictionary(length, ' ');
  const size_t read = file.read(reinterpret_cast<uint8_t*>(dictionary.data()), length);
  CHECK(read == length, "{}: cut short: its header has {} bytes, but only {} are there; fetch it again", file.name(),
        length, read);
  return {parse_npy_header(dictionary, file.name()), 8 + length_bytes + length};
}

// Bytes that the elements take, checked against overflow.
uint64_t count_bytes(const Npy& array) {
  CHECK(array.shape.size() <= most_axes, "{}: has {} axes, wants at most {}", array.file, array.shape.size(),
        most_axes);
  uint64_t bytes = array.item_bytes;
  for (const int64_t extent : array.shape) {
    CHECK(extent > 0, "{}: holds nothing: its shape is {}", array.file, extents(array.shape));
    CHECK(!__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes) && bytes < uint64_t(1) << 62,
          "{}: a shape of {} is larger than any file; is it damaged?", array.file, extents(array.shape));
  }
  return bytes;
}

// From the first index running fastest to the last one.
std::vector<uint8_t> to_c_order(const Npy& array) {
  const size_t item = array.item_bytes, axes = array.shape.size();
  std::vector<uint8_t> out(array.bytes.size());
  std::vector<int64_t> index(axes);
  for (size_t to = 0; to < out.size(); to += item) {
    size_t from = 0;
    for (size_t axis = axes; axis-- > 0;)
      from = from * static_cast<size_t>(array.shape[axis]) + static_cast<size_t>(index[axis]);
    std::memcpy(&out[to], &array.bytes[from * item], item);
    for (size_t axis = axes; axis-- > 0 && ++index[axis] == array.shape[axis];) index[axis] = 0;
  }
  return out;
}

}  // namespace

Npy read_npy(const std::string& path) {
  PackedFile file(path);
  const auto [header, header_bytes] = read_header(file);
  Npy array{.file = file.name(), .descr = header.descr, .shape = header.shape, .bytes = {}};
  CHECK(!array.descr.starts_with('>'), "{}: its numbers are big-endian ({}); save it as array.astype('<{}')",
        array.file, printable(array.descr), printable(array.descr.substr(1)));
  array.load = loader_of(array.descr);
  CHECK(array.load, "{}: its elements are {}, wants one of {}; convert it by array.astype", array.file,
        printable(array.descr), known_types);
  array.item_bytes = static_cast<size_t>(array.descr.back() - '0');
  const uint64_t bytes = count_bytes(array);
  array.bytes = read_promised(file, header_bytes, bytes, array.shape.empty() ? "one number" : extents(array.shape));
  if (header.fortran_order) array.bytes = to_c_order(array);
  return array;
}

}  // namespace tapedeck
