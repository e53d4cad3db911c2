#include "data/checksum.h"

#include <zlib.h>

namespace tapedeck {

uint32_t crc32_of(const void* bytes, size_t n, uint32_t before) {
  return static_cast<uint32_t>(crc32_z(before, static_cast<const Bytef*>(bytes), n));
}

uint64_t fnv1a(const void* bytes, size_t n, uint64_t before) {
  const auto* const at = static_cast<const uint8_t*>(bytes);
  uint64_t hash = before;
  for (size_t i = 0; i < n; ++i) hash = (hash ^ at[i]) * 0x100000001b3;
  return hash;
}

}  // namespace tapedeck
