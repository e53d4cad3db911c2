#include "engine/emulation/shared_slab.h"

#include <algorithm>
#include <cstring>

#include "engine/address_sanitizer.h"
#include "engine/emulation/race_detector.h"

namespace tapedeck::emulation {
namespace {

constexpr size_t guard_bytes = 256;
constexpr unsigned char guard = 0xA5;
constexpr size_t room_behind = race_build ? 64 * 1024 : guard_bytes;  // there the race detector sees every access

// The guard is poisoned for everybody else, AddressSanitizer's memcpy included, so it is read byte by byte.
__attribute__((no_sanitize("address"))) std::optional<size_t> first_changed(const char* bytes) {
  for (size_t i = 0; i < guard_bytes; ++i)
    if (static_cast<unsigned char>(bytes[i]) != guard) return i;
  return std::nullopt;
}

}  // namespace

void SharedSlab::resize(size_t bytes) {
  unpoison(lines_.data(), lines_.size() * sizeof(Line));
  bytes_ = bytes;
  lines_.resize(std::max(lines_.size(), (bytes + room_behind + sizeof(Line) - 1) / sizeof(Line)));
  std::memset(data() + bytes, guard, guard_bytes);
  poison(data() + bytes, guard_bytes);
}

void SharedSlab::fill_fresh() { std::memset(data(), 0xFF, bytes_); }

std::optional<size_t> SharedSlab::overrun() const {
  const std::optional<size_t> past_end = first_changed(reinterpret_cast<const char*>(lines_.data()) + bytes_);
  if (!past_end) return std::nullopt;
  return bytes_ + *past_end;
}

}  // namespace tapedeck::emulation
