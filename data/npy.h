// NumPy's .npy files [NEP 1, https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html]:
//
//   93 'NUMPY'  major  minor  |  length of the header, little-endian: 2 bytes in version 1, 4 in versions 2 and 3
//   {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 784), }  spaces  \n  |  the elements
//
// Read are versions 1 to 3, both orders, and little-endian numbers of 1 to 8 bytes. Plain or gzip is told by content.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace tapedeck {

struct NpyHeader {
  std::string descr;           // "<f4", "|u1"
  bool fortran_order = false;  // the first index runs fastest
  std::vector<int64_t> shape;  // empty: one number
};

// The dictionary of a header; file is for messages. Throws Error for anything but one with exactly those three keys.
NpyHeader parse_npy_header(std::string_view text, std::string_view file);

// What stands before the elements of an array in C order: version 1.0, padded so that they begin at a multiple of 64.
std::string npy_header(std::string_view descr, std::span<const int64_t> shape);

struct Npy {
  std::string file;  // its name, for messages
  std::string descr;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;  // the elements in C order
  size_t item_bytes = 1;       // of one
  double (*load)(const uint8_t* item) = nullptr;

  int64_t count() const { return static_cast<int64_t>(bytes.size() / item_bytes); }
  // An element as a number; integers beyond 2^53 are rounded.
  double at(int64_t i) const { return load(&bytes[static_cast<size_t>(i) * item_bytes]); }
};

// Throws Error when the file is not as its header promises, and for elements that are no numbers of ours.
Npy read_npy(const std::string& path);

// The array [N, …] as N examples. The answers are those of the file options.label, an array [N]; without one they are
// the last column of an array of rank 2. Bytes (|u1) stay bytes and count as pixels, so a feature is byte / 255;
// other numbers are taken as they are. Class ids are 0 … the largest that occurs.
Dataset load_npy(const std::string& path, const DataOptions& options);

}  // namespace tapedeck
