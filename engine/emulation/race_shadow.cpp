#include "engine/emulation/race_shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace tapedeck::emulation::race {
namespace {

Cell* reserve(size_t cells) {
  void* const p =
      mmap(nullptr, cells * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return static_cast<Cell*>(p);
}

}  // namespace

Shadow::Shadow(size_t bytes) : bytes_(bytes), words_(reserve(bytes / 4 + 1)), byte_cells_(reserve(bytes + 4)) {}

Shadow::~Shadow() {
  munmap(words_, (bytes_ / 4 + 1) * sizeof(Cell));
  munmap(byte_cells_, (bytes_ + 4) * sizeof(Cell));
}

void Shadow::set(size_t offset, size_t bytes, Memory memory) {
  visit(offset, bytes, true, [&](Cell& cell, size_t) {
    cell = {};
    cell.memory = memory;
    return true;
  });
}

void Shadow::split(size_t word) {
  std::fill_n(byte_cells_ + 4 * word, 4, words_[word]);
  words_[word].split = true;
}

}  // namespace tapedeck::emulation::race
