// Tiles: what the kernels of attention do with tiles of n rows in shared memory, a block of 4n lanes together.
//   a tile      n rows of a head's queries, keys, values or dy, in Acc<T>, padded with zeros to `columns`
//   a product   of two tiles over their columns: n × n numbers; eight lanes share two rows of it, lane i of them has
//               every eighth column from i on, in registers
//   a sum       n × columns, of an n × n matrix of weights and a tile: shared out the same way
// Each lane reads two rows for all its columns, so that of what it reads from shared memory much is used twice.
#pragma once
#include "engine/launch_blocks.h"
#include "ops/attention.h"

namespace tapedeck {

constexpr size_t tile_bytes(int n, int columns, int tiles, int matrices, size_t number) {
  return static_cast<size_t>(tiles * n * (columns + 1) + matrices * n * (n + 1)) * number;
}
// As many rows as let four tiles and two matrices of weights lie in the 48 KiB that every block may have: 32, or half
// or a quarter of it.
constexpr int rows_of_tiles(int columns, size_t number) {
  int n = 32;
  while (tile_bytes(n, columns, 4, 2, number) > 48 * 1024) n /= 2;
  return n;
}

template <class A, int columns>
struct Tiles {
  static constexpr int n = rows_of_tiles(columns, sizeof(A));
  static constexpr int lanes = 4 * n;
  static constexpr int step = columns + 1,
                       weight_step = n + 1;  // one more: lanes of neighbouring rows read other banks
  static constexpr int tile = n * step, weights = n * weight_step;  // numbers
  static constexpr int across = n / 8, wide = columns / 8;          // columns that a lane has of a product, of a sum

  template <int tiles, int matrices>
  static constexpr size_t bytes = tile_bytes(n, columns, tiles, matrices, sizeof(A));
  static_assert(n >= 8, "eight lanes share a row of a product, so a tile has eight rows at least");

  Block b;
  HD int row(int which) const { return b.lane / 8 + which * (n / 2); }  // which: 0 or 1
  HD int column(int which) const { return b.lane % 8 + which * 8; }

  // rows × cols numbers, rows `from_step` apart.
  template <class T>
  HD void load(A* to, const T* from, int64_t from_step, int64_t rows, int64_t cols) const {
    for (int i = b.lane; i < n * columns; i += lanes) {
      const int r = i / columns, c = i % columns;
      to[r * step + c] = r < rows && c < cols ? A(from[r * from_step + c]) : A(0);
    }
  }

  HD void product(const A* x, const A* y, int64_t cols, A (&out)[2][across]) const {
    UNROLL for (int m = 0; m < across; ++m) out[0][m] = out[1][m] = 0;
    const A* const upper = x + row(0) * step;
    const A* const lower = x + row(1) * step;
    for (int64_t c = 0; c < cols; ++c) {
      const A x0 = upper[c], x1 = lower[c];
      UNROLL for (int m = 0; m < across; ++m) {
        const A value = y[column(m) * step + c];
        out[0][m] += x0 * value;
        out[1][m] += x1 * value;
      }
    }
  }

  // A lane's part of a matrix of weights, for sum().
  HD void store(A* w, const A (&part)[2][across]) const {
    UNROLL for (int m = 0; m < across; ++m) {
      w[row(0) * weight_step + column(m)] = part[0][m];
      w[row(1) * weight_step + column(m)] = part[1][m];
    }
  }

  HD void sum(const A* w, const A* y, A (&total)[2][wide]) const {  // total += w · y
    const A* const upper = w + row(0) * weight_step;
    const A* const lower = w + row(1) * weight_step;
    for (int j = 0; j < n; ++j) {
      const A w0 = upper[j], w1 = lower[j];
      UNROLL for (int m = 0; m < wide; ++m) {
        const A value = y[j * step + column(m)];
        total[0][m] += w0 * value;
        total[1][m] += w1 * value;
      }
    }
  }

  // The eight lanes that share a row, joined: max or sum of one value each.
  HD static A max_of_eight(A value, Site site = Site::here()) {
    UNROLL for (int mask = 1; mask < 8; mask *= 2) {
      const A other = Block::exchange(value, mask, site);
      value = value > other ? value : other;
    }
    return value;
  }
  HD static A sum_of_eight(A value, Site site = Site::here()) {
    UNROLL for (int mask = 1; mask < 8; mask *= 2) value += Block::exchange(value, mask, site);
    return value;
  }
};

}  // namespace tapedeck
