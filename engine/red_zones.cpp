#include "engine/red_zones.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "engine/address_sanitizer.h"
#include "engine/check.h"
#include "engine/emulation/race_detector.h"

namespace tapedeck {
namespace {

constexpr unsigned char red_zone_byte = 0xA5;

bool intact(const char* buffer, size_t size, size_t padded) {
  if (under_address_sanitizer) return true;  // it has stopped the program at the write itself
  return std::all_of(buffer + size, buffer + padded,
                     [](char byte) { return static_cast<unsigned char>(byte) == red_zone_byte; });
}

}  // namespace

void RedZones::open(char* buffer, size_t size, size_t padded) {
  std::lock_guard lock(mutex_);
  forget_overlapping(buffer, padded);
  unpoison(buffer, padded);
  std::memset(buffer, 0xff, size);
  std::memset(buffer + size, red_zone_byte, padded - size);
  poison(buffer, padded);
  unpoison(buffer, size);
  open_[buffer] = {size, padded};
  emulation::device_allocated(buffer, size);
}

void RedZones::close(char* buffer) noexcept {
  std::lock_guard lock(mutex_);
  const auto found = open_.find(buffer);
  if (found == open_.end()) return;
  const auto [size, padded] = found->second;
  forget(found);
  poison(buffer, padded);
  emulation::device_released(buffer, size);
}

void RedZones::forget(Open::iterator buffer) {
  const auto [size, padded] = buffer->second;
  if (overrun_.empty() && !intact(buffer->first, size, padded))
    overrun_ = "a buffer of " + std::to_string(size) + " bytes, freed since";
  open_.erase(buffer);
}

// What a graph leaves behind when it has run may lie where it had a buffer before that, and has again in its next run.
void RedZones::forget_overlapping(char* begin, size_t bytes) {
  auto buffer = open_.lower_bound(begin + bytes);
  while (buffer != open_.begin()) {
    const auto before = std::prev(buffer);
    if (before->first + before->second.padded <= begin) break;
    forget(before);
  }
}

void RedZones::check() {
  std::lock_guard lock(mutex_);
  for (const auto& [buffer, shape] : open_)
    if (overrun_.empty() && !intact(buffer, shape.size, shape.padded))
      overrun_ = "a buffer of " + std::to_string(shape.size) + " bytes";
  if (overrun_.empty()) return;
  const std::string what = std::exchange(overrun_, {});
  throw Error(text("something wrote past the end of {}", what));
}

}  // namespace tapedeck
