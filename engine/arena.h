// Arena: one slab of memory per device, handed out best fit first and joined again when freed. The same sequence of
// calls gives the same addresses, so a training step finds its buffers where the last one left them.
//
// A checked arena (always on `emulated`, in tests on `cpu`) fills fresh memory with 0xFF, which is NaN in every
// floating format, and keeps a red zone behind each buffer. AddressSanitizer builds always do, and poison the red zones
// and what has been freed.
// Any thread may call any member.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace tapedeck {

class Arena {
 public:
  static constexpr size_t alignment = 256;

  // Reserves address space, less where the system grants less; pages arrive when touched.
  Arena(std::string name, size_t capacity, bool checked);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* allocate(size_t bytes);  // never null for bytes > 0; throws OutOfMemory with asked, largest gap, free and total
  void release(void* address) noexcept;

  struct Use {
    size_t bytes = 0, peak_bytes = 0;  // as asked for, without rounding
    int64_t buffers = 0;
  };
  Use use() const;
  void reset_peak();
  size_t capacity() const { return capacity_; }
  void limit(size_t bytes);  // allocate() refuses to go beyond; throws UsageError when more than the slab

  void set_checked(bool on);     // for buffers allocated from now on
  void check_red_zones() const;  // throws Error naming the first buffer that was written past its end

 private:
  struct Buffer {
    size_t padded, bytes;
    bool red_zone;
  };
  bool intact(size_t offset, const Buffer& buffer) const;
  [[noreturn]] void throw_out_of_memory(size_t bytes) const;

  const std::string name_;
  size_t capacity_ = 0;
  char* slab_ = nullptr;
  mutable std::mutex mutex_;
  bool checked_;
  size_t limit_ = 0, taken_ = 0, touched_ = 0;
  std::map<size_t, Buffer> buffers_;          // by offset
  std::map<size_t, size_t> gap_at_;           // offset -> size
  std::set<std::pair<size_t, size_t>> gaps_;  // (size, offset): best fit is lower_bound
  mutable std::string overrun_;               // found when a buffer was released, reported by the next check
  Use use_;
};

}  // namespace tapedeck
