// Shape: the extents of a tensor, row-major and always contiguous. The last extent is what ops call the columns, the
// product of the others the rows; a scalar has rank 0, one row and one column.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>

#include "engine/check.h"

namespace tapedeck {

class Shape {
 public:
  static constexpr int max_rank = 6;

  Shape() = default;
  Shape(std::initializer_list<int64_t> extents) {
    CHECK(extents.size() <= max_rank, "shape: at most {} extents, got {}", max_rank, extents.size());
    for (int64_t extent : extents) push(extent);
  }

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return extent_[axis < 0 ? rank_ + axis : axis]; }  // -1 is the last
  int64_t count() const { return count_; }
  int64_t cols() const { return rank_ == 0 ? 1 : extent_[rank_ - 1]; }
  int64_t rows() const { return cols() == 0 ? leading() : count_ / cols(); }

  // Appends an extent. Throws OutOfMemory where the number of elements would not fit in 63 bits.
  void push(int64_t extent) {
    CHECK(extent >= 0, "shape: an extent cannot be negative, got {}", extent);
    CHECK(rank_ < max_rank, "shape: at most {} extents", max_rank);
    extent_[rank_++] = extent;
    if (__builtin_mul_overflow(count_, extent, &count_) || count_ > INT64_MAX / 16)
      throw OutOfMemory(text("shape {}: more elements than 2^59, which no memory holds", str()));
  }
  Shape with_last(int64_t extent) const {  // the same rows, another number of columns
    Shape result;
    for (int axis = 0; axis + 1 < rank_; ++axis) result.push(extent_[axis]);
    result.push(extent);
    return result;
  }
  bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (int axis = 0; axis < rank_; ++axis)
      if (extent_[axis] != other.extent_[axis]) return false;
    return true;
  }
  std::string str() const {  // "[512, 784]"
    std::string out = "[";
    for (int axis = 0; axis < rank_; ++axis) out += (axis ? ", " : "") + std::to_string(extent_[axis]);
    return out + "]";
  }

 private:
  int64_t leading() const {
    int64_t product = 1;
    for (int axis = 0; axis + 1 < rank_; ++axis) product *= extent_[axis];
    return product;
  }
  int64_t extent_[max_rank] = {};
  int64_t count_ = 1;
  int rank_ = 0;
};

}  // namespace tapedeck
