#include "engine/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "engine/address_sanitizer.h"
#include "engine/check.h"
#include "engine/scope.h"

namespace tapedeck {
namespace {
constexpr size_t red_zone_bytes = 256;
constexpr unsigned char red_zone_byte = 0xA5;
constexpr double mib = 1 << 20;

std::string size_text(size_t bytes) {
  if (bytes >= 1 << 20) return text("{:.1f} MiB", bytes / mib);
  return text("{:.1f} KiB", static_cast<double>(bytes) / 1024);
}

size_t round_up(size_t bytes) { return (bytes + Arena::alignment - 1) / Arena::alignment * Arena::alignment; }

// Address space for a slab, or half of it, a quarter, … where the system (ulimit -v) grants no more.
std::pair<char*, size_t> reserve(const std::string& name, size_t wanted) {
  for (size_t bytes = wanted / Arena::alignment * Arena::alignment; bytes > 0;
       bytes = bytes / 2 / Arena::alignment * Arena::alignment) {
    void* slab = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slab == MAP_FAILED) continue;
    madvise(slab, bytes, MADV_HUGEPAGE);  // fewer TLB misses in gemm; a wish that may be refused
    return {static_cast<char*>(slab), bytes};
  }
  throw OutOfMemory(text("arena {}: the system refuses any address space (ulimit -v?)", name));
}

}  // namespace

Arena::Arena(std::string name, size_t capacity, bool checked) : name_(std::move(name)), checked_(checked) {
  std::tie(slab_, capacity_) = reserve(name_, capacity);
  limit_ = capacity_;
  gap_at_[0] = capacity_;
  gaps_.insert({capacity_, 0});
}

Arena::~Arena() {
  unpoison(slab_, touched_);
  munmap(slab_, capacity_);
}

void* Arena::allocate(size_t bytes) {
  std::lock_guard lock(mutex_);
  const bool red_zone = checked_ || under_address_sanitizer;
  const size_t padded =
      bytes > capacity_ ? bytes : round_up(std::max<size_t>(bytes, 1)) + (red_zone ? red_zone_bytes : 0);
  const auto gap = gaps_.lower_bound({padded, 0});
  if (gap == gaps_.end() || taken_ + padded > limit_) throw_out_of_memory(bytes);
  const auto [size, offset] = *gap;
  gaps_.erase(gap);
  gap_at_.erase(offset);
  if (size > padded) {
    gap_at_[offset + padded] = size - padded;
    gaps_.insert({size - padded, offset + padded});
  }
  buffers_[offset] = {padded, bytes, red_zone};
  touched_ = std::max(touched_, offset + padded);
  taken_ += padded;
  use_.bytes += bytes;
  use_.buffers += 1;
  use_.peak_bytes = std::max(use_.peak_bytes, use_.bytes);
  char* address = slab_ + offset;
  if (red_zone) {
    unpoison(address, padded);
    std::memset(address, 0xff, bytes);
    std::memset(address + bytes, red_zone_byte, padded - bytes);
    poison(address, padded);
  }
  unpoison(address, bytes);
  return address;
}

void Arena::release(void* address) noexcept {
  std::lock_guard lock(mutex_);
  const auto buffer = buffers_.find(static_cast<size_t>(static_cast<char*>(address) - slab_));
  auto [offset, size] = std::pair(buffer->first, buffer->second.padded);
  if (!intact(offset, buffer->second) && overrun_.empty())
    overrun_ = "a buffer of " + std::to_string(buffer->second.bytes) + " bytes, freed since";
  taken_ -= size;
  use_.bytes -= buffer->second.bytes;
  use_.buffers -= 1;
  buffers_.erase(buffer);
  poison(address, size);

  auto after = gap_at_.lower_bound(offset);
  if (after != gap_at_.end() && after->first == offset + size) {
    size += after->second;
    gaps_.erase({after->second, after->first});
    after = gap_at_.erase(after);
  }
  if (after != gap_at_.begin())
    if (const auto before = std::prev(after); before->first + before->second == offset) {
      gaps_.erase({before->second, before->first});
      offset = before->first;
      size += before->second;
      gap_at_.erase(before);
    }
  gap_at_[offset] = size;
  gaps_.insert({size, offset});
}

Arena::Use Arena::use() const {
  std::lock_guard lock(mutex_);
  return use_;
}

void Arena::reset_peak() {
  std::lock_guard lock(mutex_);
  use_.peak_bytes = use_.bytes;
}

void Arena::limit(size_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes > capacity_)
    throw UsageError(text("memory limit: {:.1f} MiB asked, the machine has {:.1f} MiB", bytes / mib, capacity_ / mib));
  limit_ = bytes;
}

void Arena::set_checked(bool on) {
  std::lock_guard lock(mutex_);
  checked_ = on;
}

bool Arena::intact(size_t offset, const Buffer& buffer) const {
  // AddressSanitizer has stopped the program at the write itself.
  if (under_address_sanitizer || !buffer.red_zone) return true;
  return std::all_of(slab_ + offset + buffer.bytes, slab_ + offset + buffer.padded,
                     [](char byte) { return static_cast<unsigned char>(byte) == red_zone_byte; });
}

void Arena::check_red_zones() const {
  std::lock_guard lock(mutex_);
  for (const auto& [offset, buffer] : buffers_)
    if (overrun_.empty() && !intact(offset, buffer))
      overrun_ = "a buffer of " + std::to_string(buffer.bytes) + " bytes";
  if (overrun_.empty()) return;
  const std::string what = std::exchange(overrun_, {});
  throw Error(text("arena {}: something wrote past the end of {}", name_, what));
}

void Arena::throw_out_of_memory(size_t bytes) const {
  const size_t largest = gaps_.empty() ? 0 : gaps_.rbegin()->first;
  const std::string& layer = Scope::path();
  throw OutOfMemory(
      text("arena {}: wanted {}{}, but {} of {} are free (largest gap {}) and {} tensors hold {}: try a smaller "
           "--batch with --accumulate, or a smaller --hidden",
           name_, size_text(bytes), layer.empty() ? "" : " for " + layer, size_text(limit_ - std::min(taken_, limit_)),
           size_text(limit_), size_text(std::min(largest, limit_ - std::min(taken_, limit_))), use_.buffers,
           size_text(use_.bytes)));
}

}  // namespace tapedeck
