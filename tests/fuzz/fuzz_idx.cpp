// Images and labels. The input: how many bytes the labels have (2, little-endian), the labels' file, the images' file.
#include <zlib.h>

#include "data/idx.h"
#include "tests/fuzz/fuzz.h"

using namespace tapedeck;

namespace {

std::string header(const std::vector<uint32_t>& extents) {
  std::string out = {0, 0, 8, static_cast<char>(extents.size())};
  for (const uint32_t n : extents)
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(n >> shift);
  return out;
}

std::string gzip(const std::string& plain) {
  z_stream z{};
  if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::runtime_error("deflate");
  std::string packed(deflateBound(&z, plain.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  z.avail_in = static_cast<uInt>(plain.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  deflate(&z, Z_FINISH);
  packed.resize(z.total_out);
  deflateEnd(&z);
  return packed;
}

std::string input(const std::string& labels, const std::string& images) {
  return raw(std::vector<uint16_t>{static_cast<uint16_t>(labels.size())}) + labels + images;
}

}  // namespace

std::vector<std::string> seeds() {
  const std::string labels = header({12}) + std::string("\0\1\2\0\1\2\0\1\2\0\1\2", 12);
  const std::string images = header({12, 2, 3}) + std::string(72, 'x');
  return {input(labels, images), input(gzip(labels), gzip(images)), input(labels, gzip(images) + gzip("")),
          input(header({0}), header({0, 28, 28})), input(labels, header({2147483647, 28, 28}))};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t wanted = data[0] | data[1] << 8, label_bytes = std::min(wanted, size - 2);
  const MemoryFile labels(bytes_of(data + 2, label_bytes));
  const MemoryFile images(bytes_of(data + 2 + label_bytes, size - 2 - label_bytes));
  for (const bool numbers : {false, true}) {
    Dataset set;
    if (!accepts([&] { set = load_idx(images.path(), {.label = labels.path(), .regression = numbers}); })) continue;
    promise(accepts([&] { check(set); }), "a data set that was taken is sound");
  }
  return 0;
}
