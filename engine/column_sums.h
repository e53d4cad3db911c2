// sum_columns(device, n, cols, out, value): out[j] = Σ value(i, j) over i < n, for every j < cols, as bias gradients
// need it. The order of addition follows from n and cols alone, so no thread count and no GPU changes the result:
//   cpu                  a column in the order of its rows, by one thread
//   device with lanes    blocks of 8 warps sum strips of 32 columns over chunks of rows. Where there are several chunks
//                        their sums, a matrix of one row a chunk, are summed likewise in a second stage. Atomic adds
//                        would need no such matrix, but add in another order every time.
#pragma once
#include <algorithm>

#include "engine/launch.h"
#include "engine/tensor.h"

namespace tapedeck {

template <class T, class Value>
struct ColumnSums {  // one strip of `cols` columns over one chunk of rows per Block
  Value value;
  Into<T> out;  // [chunks, all_cols]; p = null: nobody wants the sums, only what value() does besides
  int64_t n, all_cols;
  int64_t cols, strips, chunk;
  int64_t work() const { return chunk * cols; }
  HD void operator()(Block b, int64_t row) const {
    const int64_t first = row % strips * cols, left = all_cols - first;
    const int64_t part = row / strips, first_row = part * chunk, rest = n - first_row, to = part * all_cols + first;
    b.column_sums<Acc<T>>(
        rest < chunk ? rest : chunk, static_cast<int>(left < cols ? left : cols),
        [&](int64_t i, int j) { return value(first_row + i, first + j); },
        [&](int j, Acc<T> total) {
          if (out.p) out(to + j, total);
        });
  }
};

template <class T>
struct Element {  // value() of a plain sum: element (i, j) of a matrix
  const T* x;
  int64_t cols;
  HD Acc<T> operator()(int64_t i, int64_t j) const { return Acc<T>(x[i * cols + j]); }
};

// Columns that one Block sums side by side: a warp's width, or, on the CPU, a strip for each thread.
inline int column_width(Device device, int64_t cols) {
  if (device != Device::cpu) return 32;
  const int64_t share = (cols / threads() + 63) / 64 * 64;  // whole cache lines
  return static_cast<int>(std::clamp<int64_t>(share, 64, Block::max_column_width));
}

namespace detail {
inline constexpr int column_lanes = 256;

// Rows that a block sums: 32 for each of its warps, so that a GPU is busy with few columns too, and for many rows about
// √n, so that the second stage is no longer than the first.
inline int64_t rows_of_chunk(int64_t n) {
  int64_t chunk = column_lanes;
  while (chunk * chunk < n) chunk *= 2;
  return chunk;
}

// out: [chunks, cols]
template <class T, class Value>
void sum_chunks(Device device, int64_t n, int64_t cols, int64_t chunks, int64_t chunk, Into<T> out,
                const Value& value) {
  const int64_t width = column_width(device, cols), strips = (cols + width - 1) / width;
  rows_on_lanes(device, strips * chunks, column_lanes, Block::column_sum_bytes<Acc<T>>(column_lanes),
                ColumnSums<T, Value>{value, out, n, cols, width, strips, chunk});
}
}  // namespace detail

// value: a functor (int64_t i, int64_t j) -> Acc<T>, called once for each element.
template <class T, class Value>
void sum_columns(Device device, int64_t n, int64_t cols, Into<T> out, const Value& value) {
  using A = Acc<T>;
  if (cols == 0) return;
  if (device == Device::cpu) {
    const int64_t width = column_width(device, cols), strips = (cols + width - 1) / width;
    rows(device, strips, ColumnSums<T, Value>{value, out, n, cols, width, strips, n});
    return;
  }
  const int64_t chunk = detail::rows_of_chunk(n), chunks = (n + chunk - 1) / chunk;
  if (chunks <= 1 || !out.p) {
    detail::sum_chunks(device, n, cols, std::max<int64_t>(chunks, 1), chunk, out, value);
    return;
  }
  const Tensor parts = Tensor::empty({chunks, cols}, dtype_of<A>, device);
  detail::sum_chunks(device, n, cols, chunks, chunk, Into<A>{parts.ptr<A>()}, value);
  detail::sum_chunks(device, chunks, cols, 1, chunks, out, Element<A>{parts.ptr<A>(), cols});
}

}  // namespace tapedeck
