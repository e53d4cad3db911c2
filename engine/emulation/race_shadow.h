// The race detector's memory of memory: for every place, who wrote it last and who has read it since.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tapedeck::emulation::race {

constexpr uint32_t no_lane = 0x3fff;  // a copy, fill or gemm

struct Visit {
  uint32_t time;  // of the detector's clock, which counts barriers; 0: there was none
  uint32_t position, block;
  uint32_t code;  // address behind the instruction: the race build's program lies below 4 GiB
  uint16_t stream;
  uint16_t lane : 14;  // in the block
  uint16_t atomic : 1;
};

enum class Memory : uint8_t { never_given, live, freed };

// Four readers are enough to find one that is not ordered with a later write, whenever there is one in the same
// operation; of other streams' readers one is kept.
struct Cell {
  Visit write;
  Visit last;        // reader
  Visit other_lane;  // the last reader in that one's warp
  Visit other_warp;  // … in that one's operation
  Visit other_operation;
  Memory memory;
  bool split;  // a word whose bytes differ: they have a cell each
};

// Cells for `bytes` bytes, one for each aligned word of four, or four where an access was narrower or astride.
// Takes address space only, until it is used.
class Shadow {
 public:
  explicit Shadow(size_t bytes);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  size_t bytes() const { return bytes_; }

  // f(cell, offset) for the cells of a range, in order, until it returns false. `joins` says that f leaves the same in
  // each, so that split words become whole again.
  template <class F>
  void visit(size_t offset, size_t bytes, bool joins, const F& f) {
    const size_t end = offset + bytes;
    for (size_t at = offset; at < end;) {
      Cell& word = words_[at / 4];
      const size_t left = at % 4 == 0 && end - at >= 4 ? 4 : 1;
      if (left == 4 && !word.split) {
        if (!f(word, at)) return;
      } else {
        if (!word.split) split(at / 4);
        for (size_t i = 0; i < left; ++i)
          if (!f(byte_cells_[at + i], at + i)) return;
        if (left == 4 && joins) word = byte_cells_[at];
      }
      at += left;
    }
  }

  void set(size_t offset, size_t bytes, Memory memory);  // forgets every visit

 private:
  void split(size_t word);

  size_t bytes_;
  Cell *words_, *byte_cells_;
};

}  // namespace tapedeck::emulation::race
