// attention on devices with lanes: a block for each tile of queries (for dk and dv: of keys) of each head of each
// example. It walks over the tiles of keys (of queries), which its lanes share in shared memory, so that no T × T
// matrix exists. The longest walks of a causal mask come first.
//   forward    for each tile of keys: s = q kᵀ / √d; top' = max(top, s); y = y e^(top − top') + e^(s − top') v; the sum
//              of e^(s − top) likewise        [online softmax: Milakov & Gimelshein 2018; Dao et al. 2022]
//   backward   P = e^(s − lse), dS = P ∘ (dy vᵀ − ⟨dy, y⟩) / √d; dq = dS k by one kernel, dv = Pᵀ dy and dk = dSᵀ q by
//              another. Both make P and dS anew, which costs two products more than adding to dq by atomics would, and
//              gives the same bits every time.
#include <cmath>

#include "engine/math.h"
#include "ops/attention_tiles.h"

namespace tapedeck {
namespace {

HD int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

template <class T, int columns>
struct Place {  // of a block: an example, a head and a tile
  using A = Acc<T>;
  int64_t example, head, first;
  HD Place(const Attention<T>& a, int64_t rows, int64_t block, bool last_first = true) {
    constexpr int64_t n = Tiles<A, columns>::n;
    const int64_t tiles = (rows + n - 1) / n, heads = a.batch * a.heads;
    example = block % heads / a.heads;
    head = block % a.heads;
    first = (last_first ? tiles - 1 - block / heads : block / heads) * n;
  }
};
template <class T, int columns>
int64_t places(const Attention<T>& a, int64_t rows) {
  constexpr int64_t n = Tiles<Acc<T>, columns>::n;
  return a.batch * a.heads * ((rows + n - 1) / n);
}

template <class T, int columns>
struct AttentionForward {
  using A = Acc<T>;
  using Shared = Tiles<A, columns>;
  static constexpr int n = Shared::n, lanes = Shared::lanes, across = Shared::across, wide = Shared::wide;
  static constexpr size_t shared_bytes = Shared::template bytes<3, 1>;
  Attention<T> a;
  T* y;
  A* lse;

  HD void operator()(Block b, int64_t block) const {
    const Shared tiles{b};
    A* const q = reinterpret_cast<A*>(b.scratch);
    A* const k = q + Shared::tile;
    A* const v = k + Shared::tile;
    A* const w = v + Shared::tile;
    const Place<T, columns> at(a, a.queries, block);
    const int64_t exist = a.visible.existing(at.example), rows = smaller(n, a.queries - at.first);
    const int64_t last = smaller(rows, exist - a.visible.past - at.first) - 1;  // row that exists; negative: none
    const int64_t keys = last < 0 ? 0 : a.visible.of(exist, at.first + last);
    tiles.load(q, a.q + a.q_at(at.example, at.head, at.first), a.q_step, rows, a.head_size);

    A out[2][wide] = {}, total[2] = {}, top[2] = {A(-INFINITY), A(-INFINITY)};
    for (int64_t from = 0; from < keys; from += n) {
      const int64_t kv = a.kv_at(at.example, at.head, from);
      b.sync();  // the last tile has been read
      tiles.load(k, a.k + kv, a.kv_step, keys - from, a.head_size);
      tiles.load(v, a.v + kv, a.kv_step, keys - from, a.head_size);
      b.sync();
      A s[2][across];
      tiles.product(q, k, a.head_size, s);
      UNROLL for (int r = 0; r < 2; ++r) {
        const int64_t seen = a.visible.of(exist, at.first + tiles.row(r)) - from;
        A highest = top[r];
        UNROLL for (int m = 0; m < across; ++m) {
          s[r][m] = tiles.column(m) < seen ? s[r][m] * a.scale : A(-INFINITY);
          highest = highest > s[r][m] ? highest : s[r][m];
        }
        highest = Shared::max_of_eight(highest);
        const A base = highest == A(-INFINITY) ? A(0) : highest;  // where nothing was seen yet: −∞ − −∞ is NaN
        const A before = exp(top[r] - base);
        top[r] = highest;
        total[r] *= before;
        UNROLL for (int m = 0; m < across; ++m) {
          s[r][m] = tiles.column(m) < seen ? exp(s[r][m] - base) : A(0);
          total[r] += s[r][m];
        }
        UNROLL for (int m = 0; m < wide; ++m) out[r][m] *= before;
      }
      tiles.store(w, s);
      b.sync();
      tiles.sum(w, v, out);
    }

    UNROLL for (int r = 0; r < 2; ++r) {
      const A sum = Shared::sum_of_eight(total[r]);
      const int row = tiles.row(r);
      if (row >= rows) continue;
      const bool sees = row <= last;
      const int64_t to = a.y_at(at.example, at.head, at.first + row);
      UNROLL for (int m = 0; m < wide; ++m) if (tiles.column(m) < a.head_size) y[to + tiles.column(m)] =
          T(sees ? out[r][m] / sum : A(0));
      if (b.lane % 8 == 0) lse[a.row_at(at.example, at.head, at.first + row)] = sees ? top[r] + log(sum) : A(-INFINITY);
    }
  }
};

template <class T>
struct MeanSlopes {  // ⟨dy, y⟩ of one query of one head per Block
  Attention<T> a;
  const T* y;
  const T* dy;
  Acc<T>* mean;
  int64_t cols;
  HD void operator()(Block b, int64_t row) const {
    const int64_t at = a.y_at(row / a.queries / a.heads, row / a.queries % a.heads, row % a.queries);
    const Acc<T> sum = b.sum(cols, [&](int64_t c) { return Acc<T>(dy[at + c]) * Acc<T>(y[at + c]); });
    if (b.lane == 0) mean[row] = sum;
  }
};

template <class T, int columns>
struct QueryGradient {
  using A = Acc<T>;
  using Shared = Tiles<A, columns>;
  static constexpr int n = Shared::n, lanes = Shared::lanes, across = Shared::across, wide = Shared::wide;
  static constexpr size_t shared_bytes = Shared::template bytes<4, 1>;
  Attention<T> a;
  AttentionGradient<T> g;
  const A* mean;

  HD void operator()(Block b, int64_t block) const {
    const Shared tiles{b};
    A* const q = reinterpret_cast<A*>(b.scratch);
    A* const dy = q + Shared::tile;
    A* const k = dy + Shared::tile;
    A* const v = k + Shared::tile;
    A* const w = v + Shared::tile;
    const Place<T, columns> at(a, a.queries, block);
    const int64_t exist = a.visible.existing(at.example), rows = smaller(n, a.queries - at.first);
    const int64_t last = smaller(rows, exist - at.first) - 1;
    const int64_t keys = last < 0 ? 0 : a.visible.of(exist, at.first + last);
    tiles.load(q, a.q + a.q_at(at.example, at.head, at.first), a.q_step, rows, a.head_size);
    tiles.load(dy, g.dy + a.y_at(at.example, at.head, at.first), a.y_step(), rows, a.head_size);

    A dq[2][wide] = {};
    for (int64_t from = 0; from < keys; from += n) {
      const int64_t kv = a.kv_at(at.example, at.head, from);
      b.sync();
      tiles.load(k, a.k + kv, a.kv_step, keys - from, a.head_size);
      tiles.load(v, a.v + kv, a.kv_step, keys - from, a.head_size);
      b.sync();
      A s[2][across], dp[2][across];
      tiles.product(q, k, a.head_size, s);
      tiles.product(dy, v, a.head_size, dp);
      UNROLL for (int r = 0; r < 2; ++r) {
        const int64_t seen = a.visible.of(exist, at.first + tiles.row(r)) - from;
        const int64_t row = a.row_at(at.example, at.head, at.first + tiles.row(r));
        const A log_sum = seen > 0 ? g.lse[row] : A(0), middle = seen > 0 ? mean[row] : A(0);
        UNROLL for (int m = 0; m < across; ++m) {
          const A p = tiles.column(m) < seen ? exp(s[r][m] * a.scale - log_sum) : A(0);
          s[r][m] = tiles.column(m) < seen ? a.scale * p * (dp[r][m] - middle) : A(0);
        }
      }
      tiles.store(w, s);
      b.sync();
      tiles.sum(w, k, dq);
    }

    UNROLL for (int r = 0; r < 2; ++r) {
      if (tiles.row(r) >= rows) continue;
      const int64_t to = a.q_at(at.example, at.head, at.first + tiles.row(r));
      UNROLL for (int m = 0; m < wide; ++m) if (tiles.column(m) < a.head_size) g.dq(to + tiles.column(m), dq[r][m]);
    }
  }
};

template <class T, int columns>
struct KeyValueGradient {  // the rows of its products are keys, the columns queries
  using A = Acc<T>;
  using Shared = Tiles<A, columns>;
  static constexpr int n = Shared::n, lanes = Shared::lanes, across = Shared::across, wide = Shared::wide;
  static constexpr size_t shared_bytes = Shared::template bytes<4, 2>;
  Attention<T> a;
  AttentionGradient<T> g;
  const A* mean;

  HD void operator()(Block b, int64_t block) const {
    const Shared tiles{b};
    A* const k = reinterpret_cast<A*>(b.scratch);
    A* const v = k + Shared::tile;
    A* const q = v + Shared::tile;
    A* const dy = q + Shared::tile;
    A* const p = dy + Shared::tile;
    A* const ds = p + Shared::weights;
    const Place<T, columns> at(a, a.visible.keys, block, false);  // the first keys are seen by most queries
    const int64_t exist = a.visible.existing(at.example), rows = smaller(n, a.visible.keys - at.first);
    const int64_t queries = at.first < exist ? smaller(exist, a.queries) : 0;
    const int64_t start = a.visible.causal ? at.first : 0;  // earlier queries see none of these keys
    const int64_t kv = a.kv_at(at.example, at.head, at.first);
    tiles.load(k, a.k + kv, a.kv_step, smaller(rows, exist - at.first), a.head_size);
    tiles.load(v, a.v + kv, a.kv_step, smaller(rows, exist - at.first), a.head_size);

    A dk[2][wide] = {}, dv[2][wide] = {};
    for (int64_t from = start; from < queries; from += n) {
      b.sync();
      tiles.load(q, a.q + a.q_at(at.example, at.head, from), a.q_step, queries - from, a.head_size);
      tiles.load(dy, g.dy + a.y_at(at.example, at.head, from), a.y_step(), queries - from, a.head_size);
      b.sync();
      A s[2][across], dp[2][across];
      tiles.product(k, q, a.head_size, s);
      tiles.product(v, dy, a.head_size, dp);
      UNROLL for (int m = 0; m < across; ++m) {
        const int64_t query = from + tiles.column(m), row = a.row_at(at.example, at.head, query);
        const int64_t seen = a.visible.of(exist, query) - at.first;
        const A log_sum = seen > 0 ? g.lse[row] : A(0), middle = seen > 0 ? mean[row] : A(0);
        UNROLL for (int r = 0; r < 2; ++r) {
          s[r][m] = tiles.row(r) < seen ? exp(s[r][m] * a.scale - log_sum) : A(0);
          dp[r][m] = tiles.row(r) < seen ? a.scale * s[r][m] * (dp[r][m] - middle) : A(0);
        }
      }
      tiles.store(p, s);
      tiles.store(ds, dp);
      b.sync();
      tiles.sum(p, dy, dv);
      tiles.sum(ds, q, dk);
    }

    UNROLL for (int r = 0; r < 2; ++r) {
      if (tiles.row(r) >= rows) continue;
      const int64_t to = kv + tiles.row(r) * a.kv_step;
      UNROLL for (int m = 0; m < wide; ++m) {
        if (tiles.column(m) >= a.head_size) continue;
        g.dk(to + tiles.column(m), dk[r][m]);
        g.dv(to + tiles.column(m), dv[r][m]);
      }
    }
  }
};

// f.operator()<columns>() for the smallest tile that a head fits in.
template <class F>
void with_columns(int64_t head_size, const F& f) {
  if (head_size <= 32)
    f.template operator()<32>();
  else if (head_size <= 64)
    f.template operator()<64>();
  else
    f.template operator()<max_tiled_head>();
}

}  // namespace

template <class T>
void attention_in_tiles(Device device, const Attention<T>& a, T* y, Acc<T>* lse) {
  with_columns(a.head_size, [&]<int columns>() {
    blocks(device, places<T, columns>(a, a.queries), AttentionForward<T, columns>{a, y, lse});
  });
}

template <class T>
void attention_gradient_in_tiles(Device device, const Attention<T>& a, const AttentionGradient<T>& g) {
  const int64_t count = a.batch * a.heads * a.queries;
  const Tensor mean = Tensor::empty({count}, dtype_of<Acc<T>>, device);
  rows(device, count, MeanSlopes<T>{a, g.y, g.dy, mean.ptr<Acc<T>>(), a.head_size});
  with_columns(a.head_size, [&]<int columns>() {
    blocks(device, places<T, columns>(a, a.queries), QueryGradient<T, columns>{a, g, mean.ptr<Acc<T>>()});
    blocks(device, places<T, columns>(a, a.visible.keys), KeyValueGradient<T, columns>{a, g, mean.ptr<Acc<T>>()});
  });
}

#define INSTANTIATE(T)                                                        \
  template void attention_in_tiles(Device, const Attention<T>&, T*, Acc<T>*); \
  template void attention_gradient_in_tiles(Device, const Attention<T>&, const AttentionGradient<T>&);
INSTANTIATE(double)
INSTANTIATE(float)
INSTANTIATE(Half)
INSTANTIATE(Bfloat16)
#undef INSTANTIATE

}  // namespace tapedeck
