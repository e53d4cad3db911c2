// The words of the race detector's errors.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "engine/emulation/race_shadow.h"

namespace tapedeck::emulation::race {

// "ops/softmax.cpp:23", the source line of the instruction before `code`; for a line in engine/, also the line outside
// into which it was inlined. The address itself where addr2line finds none.
std::string source_line(uint32_t code);

// The device's buffers by offset, also freed ones until their place is given out again.
struct Buffer {
  size_t bytes;
  bool live;
};
using Buffers = std::map<size_t, Buffer>;
std::string device_place(const Buffers& buffers, size_t offset);  // "byte 8 of a buffer of 64 bytes"

}  // namespace tapedeck::emulation::race
