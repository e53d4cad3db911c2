#include "engine/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "engine/address_sanitizer.h"
#include "engine/check.h"
#include "engine/scope.h"

namespace tapedeck {
namespace {
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

Arena::Arena(std::string name, size_t capacity, bool checked)
    : name_(std::move(name)), owns_slab_(true), checked_(checked) {
  std::tie(slab_, capacity_) = reserve(name_, capacity);
  limit_ = capacity_;
  gap_at_[0] = capacity_;
  gaps_.insert({capacity_, 0});
}

Arena::Arena(std::string name, void* slab, size_t capacity)
    : name_(std::move(name)),
      owns_slab_(false),
      capacity_(capacity),
      slab_(static_cast<char*>(slab)),
      checked_(false),
      limit_(capacity) {
  gap_at_[0] = capacity_;
  gaps_.insert({capacity_, 0});
}

Arena::~Arena() {
  if (!owns_slab_) return;
  unpoison(slab_, touched_);
  munmap(slab_, capacity_);
}

void Arena::guard(const char* what, std::function<void()> work) const {
  if (later_)
    later_(what, std::move(work));
  else
    work();
}

void* Arena::allocate(size_t bytes) {
  std::unique_lock lock(mutex_);
  const bool red_zone = owns_slab_ && (checked_ || under_address_sanitizer);
  const size_t padded =
      bytes > capacity_ ? bytes : round_up(std::max<size_t>(bytes, 1)) + (red_zone ? RedZones::bytes : 0);
  const auto gap = gaps_.lower_bound({padded, 0});
  if (gap == gaps_.end() || taken_ + padded > limit_) throw_out_of_memory(bytes);
  const size_t offset = gap->second;
  take(offset, padded);
  buffers_[offset] = {padded, bytes, red_zone, {}};
  touched_ = std::max(touched_, offset + padded);
  if (holding_) handed_out_[offset] = std::max(handed_out_[offset], padded);
  use_.bytes += bytes;
  use_.buffers += 1;
  note_peak();
  lock.unlock();
  char* const address = slab_ + offset;
  if (red_zone) guard("allocate", [this, address, bytes, padded] { red_zones_.open(address, bytes, padded); });
  return address;
}

void Arena::release(void* address) noexcept {
  auto* const begin = static_cast<char*>(address);
  std::shared_ptr<Hold> holder;  // dies behind the lock, which ~Hold takes
  std::unique_lock lock(mutex_);
  const auto buffer = buffers_.find(static_cast<size_t>(begin - slab_));
  if (buffer->second.red_zone) {
    lock.unlock();  // a device that works now does so without our lock
    guard("release", [this, begin] { red_zones_.close(begin); });
    lock.lock();
  }
  use_.bytes -= buffer->second.bytes;
  use_.buffers -= 1;
  const size_t offset = buffer->first, padded = buffer->second.padded;
  holder = buffer->second.holder.lock();
  buffers_.erase(buffer);
  if (holder)
    holder->ranges_[offset] = padded, held_ += padded;
  else
    give(offset, padded);
}

void Arena::take(size_t offset, size_t bytes) {
  const auto gap = std::prev(gap_at_.upper_bound(offset));
  const auto [begin, size] = *gap;
  gaps_.erase({size, begin});
  gap_at_.erase(gap);
  const auto leave = [&](size_t from, size_t to) {
    if (from == to) return;
    gap_at_[from] = to - from;
    gaps_.insert({to - from, from});
  };
  leave(begin, offset);
  leave(offset + bytes, begin + size);
  taken_ += bytes;
}

void Arena::give(size_t offset, size_t bytes) {
  taken_ -= bytes;
  auto after = gap_at_.lower_bound(offset);
  if (after != gap_at_.end() && after->first == offset + bytes) {
    bytes += after->second;
    gaps_.erase({after->second, after->first});
    after = gap_at_.erase(after);
  }
  if (after != gap_at_.begin())
    if (const auto before = std::prev(after); before->first + before->second == offset) {
      gaps_.erase({before->second, before->first});
      offset = before->first;
      bytes += before->second;
      gap_at_.erase(before);
    }
  gap_at_[offset] = bytes;
  gaps_.insert({bytes, offset});
}

void Arena::start_holding(Hold& hold) {
  std::lock_guard lock(mutex_);
  holding_ = true;
  for (const auto& [offset, bytes] : hold.ranges_) give(offset, bytes), held_ -= bytes;
  handed_out_ = std::move(hold.ranges_);
  hold.ranges_.clear();
}

void Arena::stop_holding(const std::shared_ptr<Hold>& hold) {
  std::lock_guard lock(mutex_);
  holding_ = false;
  for (auto [begin, size] : handed_out_) {
    // What of the range is free is taken now; a buffer that is still in use joins when it is released.
    const size_t end = begin + size;
    for (auto buffer = buffers_.lower_bound(begin); buffer != buffers_.end() && buffer->first < end; ++buffer)
      buffer->second.holder = hold;
    auto gap = gap_at_.upper_bound(begin);
    if (gap != gap_at_.begin()) --gap;
    while (gap != gap_at_.end() && gap->first < end) {
      const size_t from = std::max(begin, gap->first), to = std::min(end, gap->first + gap->second);
      ++gap;
      if (from >= to) continue;
      take(from, to - from);
      hold->ranges_[from] = to - from;
      held_ += to - from;
    }
  }
  note_peak();
}

Arena::Hold::~Hold() {
  std::lock_guard lock(arena_.mutex_);
  for (const auto& [offset, bytes] : ranges_) arena_.give(offset, bytes), arena_.held_ -= bytes;
}

void Arena::note_peak() {
  use_.peak_bytes = std::max(use_.peak_bytes, use_.bytes + held_);
  watched_peak_ = std::max(watched_peak_, use_.bytes + held_);
}

Arena::Use Arena::use() const {
  std::lock_guard lock(mutex_);
  Use use = use_;
  use.bytes += held_;
  return use;
}

Arena::Use Arena::watch() {
  std::lock_guard lock(mutex_);
  Use use = use_;
  use.bytes += held_;
  use.peak_bytes = std::exchange(watched_peak_, use.bytes);
  return use;
}

void Arena::reset_peak() {
  std::lock_guard lock(mutex_);
  use_.peak_bytes = use_.bytes + held_;
}

size_t Arena::limit() const {
  std::lock_guard lock(mutex_);
  return limit_;
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

void Arena::check_red_zones() {
  try {
    red_zones_.check();
  } catch (const Error& e) {
    throw Error(text("arena {}: {}", name_, e.what()));
  }
}

void Arena::throw_out_of_memory(size_t bytes) const {
  const size_t largest = gaps_.empty() ? 0 : gaps_.rbegin()->first;
  const std::string& layer = Scope::path();
  throw OutOfMemory(text(
      "arena {}: wanted {}{}, but {} of {} are free (largest gap {}) and {} tensors hold {}", name_, size_text(bytes),
      layer.empty() ? "" : " for " + layer, size_text(limit_ - std::min(taken_, limit_)), size_text(limit_),
      size_text(std::min(largest, limit_ - std::min(taken_, limit_))), use_.buffers, size_text(use_.bytes)));
}

}  // namespace tapedeck
