// IDX files as bytes, for the tests of their reader.
#pragma once
#include <zlib.h>

#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

using Bytes = std::vector<uint8_t>;

inline Bytes idx_header(const std::vector<uint32_t>& extents) {
  Bytes bytes = {0, 0, 8, static_cast<uint8_t>(extents.size())};
  for (const uint32_t n : extents)
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<uint8_t>(n >> shift));
  return bytes;
}

// Images whose pixels count up from 0, modulo 251.
inline Bytes idx_images(uint32_t count, uint32_t height, uint32_t width) {
  Bytes bytes = idx_header({count, height, width});
  for (uint32_t i = 0; i < count * height * width; ++i) bytes.push_back(static_cast<uint8_t>(i % 251));
  return bytes;
}

// Labels 0 1 2 … 9 0 1 …
inline Bytes idx_labels(uint32_t count) {
  Bytes bytes = idx_header({count});
  for (uint32_t i = 0; i < count; ++i) bytes.push_back(static_cast<uint8_t>(i % 10));
  return bytes;
}

inline Bytes gzip(const Bytes& plain) {
  z_stream z{};
  if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::runtime_error("deflateInit2");
  Bytes packed(deflateBound(&z, plain.size()));
  z.next_in = const_cast<uint8_t*>(plain.data());
  z.avail_in = static_cast<uInt>(plain.size());
  z.next_out = packed.data();
  z.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&z, Z_FINISH);
  packed.resize(z.total_out);
  deflateEnd(&z);
  if (result != Z_STREAM_END) throw std::runtime_error("deflate");
  return packed;
}

inline Bytes operator+(Bytes a, const Bytes& b) { return a.insert(a.end(), b.begin(), b.end()), a; }
inline Bytes first(const Bytes& bytes, size_t n) { return {bytes.begin(), bytes.begin() + n}; }
inline Bytes text_bytes(std::string_view text) { return {text.begin(), text.end()}; }
