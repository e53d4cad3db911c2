// sum_columns(device, n, cols, out, value): out[j] = Σ value(i, j) over i < n, for every j < cols, as bias gradients
// need it. A column is summed in the order of its rows whoever does it, so no thread count changes the result.
#pragma once
#include "engine/launch.h"

namespace tapedeck {

template <class T, class Value>
struct ColumnSums {  // one strip of `cols` columns per Block
  Value value;
  Into<T> out;  // p = null: nobody wants the sums, only what value() does besides
  int64_t n, all_cols;
  int64_t cols;
  int64_t work() const { return n * cols; }
  HD void operator()(Block b, int64_t strip) const {
    const int64_t first = strip * cols, left = all_cols - first;
    b.column_sums<Acc<T>>(
        n, static_cast<int>(left < cols ? left : cols), [&](int64_t i, int j) { return value(i, first + j); },
        [&](int j, Acc<T> total) {
          if (out.p) out(first + j, total);
        });
  }
};

template <class T>
struct Element {  // value() of a plain sum: element (i, j) of a matrix
  const T* x;
  int64_t cols;
  HD Acc<T> operator()(int64_t i, int64_t j) const { return Acc<T>(x[i * cols + j]); }
};

// value: a functor (int64_t i, int64_t j) -> Acc<T>, called once for each element.
template <class T, class Value>
void sum_columns(Device device, int64_t n, int64_t cols, Into<T> out, const Value& value) {
  if (cols == 0) return;
  const int64_t width = column_width(device, cols);
  rows(device, (cols + width - 1) / width, ColumnSums<T, Value>{value, out, n, cols, width});
}

}  // namespace tapedeck
