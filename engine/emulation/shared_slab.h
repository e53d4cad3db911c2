// The shared memory of the running block: one slab, with guard bytes behind it that show a kernel writing too far.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

namespace tapedeck::emulation {

class SharedSlab {
 public:
  void resize(size_t bytes);  // for the blocks of one launch
  void fill_fresh();          // 0xFF everywhere: NaN in any floating-point format
  char* data() { return lines_.empty() ? nullptr : lines_[0].bytes; }
  size_t bytes() const { return bytes_; }
  size_t capacity() const { return lines_.size() * sizeof(Line); }  // with what lies behind

  // The offset from data() of the first guard byte that was written since resize(), if any was.
  std::optional<size_t> overrun() const;

 private:
  struct alignas(128) Line {
    char bytes[128];
  };
  std::vector<Line> lines_;
  size_t bytes_ = 0;
};

}  // namespace tapedeck::emulation
