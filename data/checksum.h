// Two checksums: CRC-32, as gzip and ZIP have it, finds damage [RFC 1952]; FNV-1a tells contents apart
// [Fowler, Noll and Vo].
#pragma once
#include <cstddef>
#include <cstdint>

namespace tapedeck {

// Of n bytes. `before` is the checksum of what stands before them, so that a long content can be taken in parts.
uint32_t crc32_of(const void* bytes, size_t n, uint32_t before = 0);

inline constexpr uint64_t fnv1a_of_nothing = 0xcbf29ce484222325;
uint64_t fnv1a(const void* bytes, size_t n, uint64_t before = fnv1a_of_nothing);

}  // namespace tapedeck
