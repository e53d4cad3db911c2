// embedding   y[b, t] = table[ids[b, t]] + positions[first + t]
//             dtable[v] = Σ dy over the tokens whose id is v        dpositions[first + t] = Σ_b dy[b, t]
//
// dtable is summed in a fixed order. Tokens are sorted by id (token_order.h) and cut into chunks of 64. A chunk of one
// id is summed first, so that the sum of a frequent id is a short one too; then each id sums these chunks and the
// tokens before and after them.
//
// An id that the table does not have is an error on the cpu, where the host can look at it at once; elsewhere its row
// is NaN, and it has no gradient.
#include "engine/column_sums.h"
#include "engine/trace.h"
#include "ops/ops.h"
#include "ops/token_order.h"

namespace tapedeck {
namespace {

template <class T>
struct EmbeddingForward {  // one token per Block
  const int32_t* ids;
  const T* table;
  const T* positions;  // from the first on; null: there are none
  T* y;
  int64_t v, tokens;  // rows of the table; tokens of an example
  int64_t cols;
  HD void operator()(Block b, int64_t row) const {
    const int32_t id = ids[row];
    T* const out = y + row * cols;
    if (id < 0 || id >= v) return b.each(cols, [&](int64_t j) { out[j] = T(Acc<T>(NAN)); });
    const T* const in = table + id * cols;
    if (!positions) return b.each(cols, [&](int64_t j) { out[j] = in[j]; });
    const T* const place = positions + row % tokens * cols;
    b.each(cols, [&](int64_t j) { out[j] = T(Acc<T>(in[j]) + Acc<T>(place[j])); });
  }
};

constexpr int64_t chunk = 64;  // tokens

template <class T>
struct SumChunksOfOneId {  // one strip of `cols` columns of one chunk per Block
  const int32_t *ids, *token;
  const T* dy;
  Acc<T>* sums;  // [chunks, all_cols]; those of other chunks are left as they are
  int64_t chunks, all_cols;
  int64_t cols;
  int64_t work() const { return chunk * cols; }
  HD void operator()(Block b, int64_t row) const {
    const int64_t place = row % chunks, first = row / chunks * cols, left = all_cols - first;
    const int32_t* const mine = token + place * chunk;
    if (ids[mine[0]] != ids[mine[chunk - 1]]) return;
    b.column_sums<Acc<T>>(
        chunk, static_cast<int>(left < cols ? left : cols),
        [&](int64_t i, int j) { return Acc<T>(dy[mine[i] * all_cols + first + j]); },
        [&](int j, Acc<T> total) { sums[place * all_cols + first + j] = total; });
  }
};

template <class T, class G>
struct SumIds {  // one strip of `cols` columns of one id per Block
  const int32_t *token, *start;
  const T* dy;
  const Acc<T>* sums;
  Into<G> dtable;
  int64_t n, v, all_cols;
  int64_t cols;
  int64_t work() const { return (n / v + 1) * cols; }
  HD void operator()(Block b, int64_t row) const {
    const int64_t id = row % v, first = row / v * cols, left = all_cols - first;
    const int64_t begin = start[id], end = start[id + 1];
    if (begin == end && dtable.add) return;
    const int64_t first_chunk = (begin + chunk - 1) / chunk, last_chunk = end / chunk;
    const int64_t chunks = first_chunk < last_chunk ? last_chunk - first_chunk : 0;
    const int64_t before = chunks > 0 ? first_chunk * chunk - begin : end - begin;
    const int64_t count = end - begin - chunks * (chunk - 1);
    b.column_sums<Acc<T>>(
        count, static_cast<int>(left < cols ? left : cols),
        [&](int64_t i, int j) {
          if (i >= before && i < before + chunks) return sums[(first_chunk + i - before) * all_cols + first + j];
          const int64_t k = begin + (i < before ? i : i + chunks * (chunk - 1));
          return Acc<T>(dy[token[k] * all_cols + first + j]);
        },
        [&](int j, Acc<T> total) { dtable(id * all_cols + first + j, total); });
  }
};

void add_up_ids(const Tensor& ids, const Tensor& dy, const Want& dtable, int64_t v) {
  const Device device = dy.device();
  const int64_t n = ids.count(), cols = dy.cols(), chunks = n / chunk;
  const int64_t width = column_width(device, cols), strips = (cols + width - 1) / width;
  with_dtype(dy.dtype, [&]<class T>() {
    using A = Acc<T>;
    const TokenOrder order = order_by_id(ids, v);
    const int32_t *const token = order.token.ptr<int32_t>(), *const start = order.start.ptr<int32_t>();
    const Tensor sums = Tensor::empty({chunks, cols}, dtype_of<A>, device);
    rows(device, strips * chunks,
         SumChunksOfOneId<T>{ids.ptr<int32_t>(), token, dy.ptr<T>(), sums.ptr<A>(), chunks, cols, width});
    dtable.into_sums<T>([&]<class G>(const Into<G>& into) {
      rows(device, strips * v, SumIds<T, G>{token, start, dy.ptr<T>(), sums.ptr<A>(), into, n, v, cols, width});
    });
  });
}

template <class T>
struct ClearOutside {  // numbers [0, begin) and [end, …)
  T* p;
  int64_t begin, end;
  HD void operator()(int64_t i) const { p[i < begin ? i : end + i - begin] = T(Acc<T>(0)); }
};

// dy is [examples, tokens · C]; its column sums are the window of dpositions that begins at `first`.
void add_up_examples(const Tensor& dy, int64_t tokens, const Want& dpositions, int64_t first) {
  const int64_t begin = first * dy.cols(), window = tokens * dy.cols();
  const int64_t examples = window == 0 ? 0 : dy.count() / window;
  with_dtype(dy.dtype, [&]<class T>() {
    dpositions.into_sums<T>([&]<class G>(const Into<G>& into) {
      if (!into.add) each(dy.device(), dpositions.count() - window, ClearOutside<G>{into.p, begin, begin + window});
      sum_columns(dy.device(), examples, window, Into<G>{into.p + begin, into.add}, Element<T>{dy.ptr<T>(), window});
    });
  });
}

void check_ids(const Tensor& ids, int64_t v) {
  if (ids.device() != Device::cpu) return;
  const int32_t* const id = ids.ptr<int32_t>();
  for (int64_t i = 0; i < ids.count(); ++i)
    CHECK(id[i] >= 0 && id[i] < v, "embedding: id {} at place {}, but the table has {} rows (0…{})", id[i], i, v,
          v - 1);
}

}  // namespace

Tensor embedding(const Tensor& ids, const Tensor& table, const Tensor& positions, int64_t first) {
  CHECK(table.rank() == 2 && table.count() > 0, "embedding: takes a table [V, C] of at least one number, got {}",
        table.shape);
  CHECK(ids.dtype == DType::i32, "embedding: ids must be i32, got {}", name(ids.dtype));
  CHECK(ids.count() <= INT32_MAX, "embedding: takes up to 2^31 − 1 ids, got {}", ids.shape);
  CHECK(!positions || (positions.rank() == 2 && positions.cols() == table.cols()),
        "embedding: the table is {} but positions are {}: make them [P, {}]", table.shape, positions.shape,
        table.cols());
  CHECK(!positions || (first >= 0 && first <= positions.rows() - ids.cols()),
        "embedding: places {}…{} do not lie in the {} of positions {}: shorten ids {}", first, first + ids.cols() - 1,
        positions.rows(), positions.shape, ids.shape);
  CHECK(!positions || positions.dtype == table.dtype, "embedding: the table is {} and positions are {}: cast one",
        name(table.dtype), name(positions.dtype));
  CHECK(ids.device() == table.device() && (!positions || positions.device() == table.device()),
        "embedding: ids are on {}, the table on {}, positions on {}: move them with to()", name(ids.device()),
        name(table.device()), name(positions ? positions.device() : table.device()));
  const int64_t v = table.rows(), tokens = ids.cols(), cols = table.cols();
  check_ids(ids, v);
  Shape shape = ids.shape;
  shape.push(cols);
  const Tensor y = Tensor::like(table, shape);
  with_dtype(table.dtype, [&]<class T>() {
    const T* const places = positions ? positions.ptr<T>() + first * cols : nullptr;
    rows(y.device(), ids.count(),
         EmbeddingForward<T>{ids.ptr<int32_t>(), table.ptr<T>(), places, y.ptr<T>(), v, tokens, cols});
  });
  trace_moves(static_cast<double>(ids.bytes()) + (positions ? 3.0 : 2.0) * static_cast<double>(y.bytes()));
  const Want dtable = want(table), dpositions = want(positions);
  return record("embedding", y, {&table, &positions},
                [ids = keep(dtable ? ids : Tensor()), dtable, dpositions, v, tokens, first](const Tensor& dy) {
                  if (dpositions) add_up_examples(dy, tokens, dpositions, first);
                  if (dtable) add_up_ids(*ids, dy, dtable, v);
                });
}

}  // namespace tapedeck
