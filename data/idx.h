// IDX files, the format of MNIST [LeCun, http://yann.lecun.com/exdb/mnist]. All numbers are big-endian:
//
//   0  0  type  rank  |  extent 0 (4 bytes) … extent rank−1 (4 bytes)  |  the elements, row-major
//
// Only type 08, unsigned bytes, is read. Plain or gzip is told by content.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace tapedeck {

struct Idx {
  std::vector<uint32_t> extents;  // [images, height, width] or [labels]
  std::vector<uint8_t> bytes;
};

// Reads a file of rank 3 (images) or 1 (labels). Throws Error when anything is not as the header promises; memory grows
// with what the file really holds, not with what its header says.
Idx read_idx_images(const std::string& path);
Idx read_idx_labels(const std::string& path);

// Reads train-images-idx3-ubyte, train-labels-idx1-ubyte and the same with t10k, each plain or with .gz, from folder.
// The last twelfth of the training file (5,000 of 60,000) validates. Throws UsageError when no folder is given.
Dataset load_mnist(const std::string& folder);

}  // namespace tapedeck
