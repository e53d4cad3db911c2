// Arena: one slab of memory per device, handed out best fit first and joined again when freed. The same sequence of
// calls gives the same addresses, so a training step finds its buffers where the last one left them.
//
// A checked arena (always on `emulated`, in tests on `cpu`) guards its buffers, see red_zones.h; AddressSanitizer
// builds always do. A GPU's arena only does the bookkeeping: the host never touches that memory.
// Any thread may call any member.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "engine/red_zones.h"

namespace tapedeck {

class Arena {
 public:
  static constexpr size_t alignment = 256;

  // Reserves address space of the host, less where the system grants less; pages arrive when touched.
  Arena(std::string name, size_t capacity, bool checked);
  // Memory of a device, which outlives the arena.
  Arena(std::string name, void* slab, size_t capacity);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* allocate(size_t bytes);  // never null for bytes > 0; throws OutOfMemory with asked, largest gap, free and total
  void release(void* address) noexcept;

  struct Use {
    size_t bytes = 0, peak_bytes = 0;  // as asked for, without rounding; and what holds keep
    int64_t buffers = 0;
  };
  Use use() const;
  void reset_peak();
  Use watch();  // the same, but with the peak since watch() was called last; use()'s own peak stays
  const char* slab() const { return slab_; }
  size_t capacity() const { return capacity_; }
  bool contains(const void* p) const { return p >= slab_ && p < slab_ + capacity_; }
  size_t limit() const;
  void limit(size_t bytes);  // allocate() refuses to go beyond; throws UsageError when more than the slab

  // Memory that captured graphs go on using: nobody else gets it until the hold dies.
  class Hold {
   public:
    explicit Hold(Arena& arena) : arena_(arena) {}
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    friend class Arena;
    Arena& arena_;
    std::map<size_t, size_t> ranges_;  // by offset
  };
  // From now on until stop_holding() the arena notes what it hands out, the hold's own memory first lent to it again.
  // All of that then belongs to the hold: what is free now, and what is still in use once it is released.
  void start_holding(Hold& hold);
  void stop_holding(const std::shared_ptr<Hold>& hold);

  void set_checked(bool on);  // for buffers allocated from now on
  void check_red_zones();     // throws Error naming the first buffer that was written past its end
  // How the device is asked to do something in its own time, after what it has been asked to do before. At first: now.
  using Later = std::function<void(const char* what, std::function<void()> work)>;
  void guard_later(Later later) { later_ = std::move(later); }

 private:
  struct Buffer {
    size_t padded, bytes;
    bool red_zone;
    std::weak_ptr<Hold> holder;
  };
  void take(size_t offset, size_t bytes);  // out of the gap it lies in
  void give(size_t offset, size_t bytes);  // back, joined with its neighbours
  void note_peak();
  void guard(const char* what, std::function<void()> work) const;
  [[noreturn]] void throw_out_of_memory(size_t bytes) const;

  const std::string name_;
  const bool owns_slab_;
  size_t capacity_ = 0;
  char* slab_ = nullptr;
  RedZones red_zones_;
  Later later_;
  mutable std::mutex mutex_;  // guards all below
  bool checked_;
  size_t limit_ = 0, taken_ = 0, touched_ = 0, held_ = 0;
  std::map<size_t, Buffer> buffers_;          // by offset
  std::map<size_t, size_t> gap_at_;           // offset -> size
  std::set<std::pair<size_t, size_t>> gaps_;  // (size, offset): best fit is lower_bound
  bool holding_ = false;
  std::map<size_t, size_t> handed_out_;  // while holding: offset -> the largest size handed out there
  Use use_;
  size_t watched_peak_ = 0;
};

}  // namespace tapedeck
