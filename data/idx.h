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

// Images and the label of each. Throws Error unless there are as many of one as of the other.
struct IdxPair {
  Idx images;
  std::vector<int32_t> labels;
  std::string shape() const;  // of one image: "28x28x1"
  int64_t features() const { return int64_t(images.extents[1]) * images.extents[2]; }
};
IdxPair read_idx_pair(const std::string& image_path, const std::string& label_path);

// Any such pair, images in path and labels in options.label: class ids are 0 … the largest that occurs, or with
// options.regression the labels are numbers to predict. Features are pixel / 255, the split is by content.
Dataset load_idx(const std::string& path, const DataOptions& options);

}  // namespace tapedeck
