// attention on the CPU: the head of an example in strips of 64 or 128 queries, which multiply with all keys they see at
// once, backward with 256 of them at a time.
//   S = q kᵀ / √d    w = e^(S − top)    y = w v / Σ w    lse = top + log Σ w
//   P = e^(S − lse)    dP = dy vᵀ    dS = P ∘ (dP − ⟨dy, y⟩) / √d    dv += Pᵀ dy    dk += dSᵀ q    dq = dS k
// [Dao et al. 2022, with tiles as large as a cache]. Each product is one gemm of the calling thread on the numbers as
// they lie in qkv; 16-bit ones are copied to f32 first, a head at a time. Heads are shared out among the threads, and
// each has memory for its own strips: memory grows with T, not with T².
#include <algorithm>
#include <cmath>

#include "engine/block.h"
#include "engine/gemm_part.h"
#include "engine/into.h"
#include "engine/math.h"
#include "engine/parallel.h"
#include "ops/attention.h"

namespace tapedeck {
namespace {

constexpr int64_t most_rows = 128, most_keys = 256;  // of a strip, and of the piece of it that backward works on
// A gemm wants many rows, a causal mask few: the strip on the diagonal computes what nobody sees.
int64_t rows_of_strip(const Visible& visible) { return visible.causal ? 64 : most_rows; }

template <class A>
struct Matrix {  // rows lie `step` apart
  A* p;
  int64_t step;
  A* row(int64_t i) const { return p + i * step; }
};

// c = alpha · op(a) · op(b) + beta · c with m × n in c, k between
template <bool transpose_a, bool transpose_b, class A>
void product(int64_t m, int64_t n, int64_t k, A alpha, const A* a, int64_t lda, const A* b, int64_t ldb, A beta, A* c,
             int64_t ldc) {
  multiply(GemmPart<A>{transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc});
}

template <class T>
constexpr bool is_acc = std::is_same_v<T, Acc<T>>;

// rows × cols numbers in Acc<T>: those of `from` themselves, or a copy at `scratch`, which moves on behind it.
template <class T>
Matrix<const Acc<T>> widened(const T* from, int64_t step, int64_t rows, int64_t cols, Acc<T>*& scratch) {
  if constexpr (is_acc<T>) {
    return {from, step};
  } else {
    Acc<T>* const copy = scratch;
    scratch += rows * cols;
    for (int64_t i = 0; i < rows; ++i)
      Block().each(cols, [=](int64_t j) { copy[i * cols + j] = Acc<T>(from[i * step + j]); });
    return {copy, cols};
  }
}

// Where a head's gradient is summed up: in place, or at `scratch` until finish() hands it over.
template <class T>
class Sum {
 public:
  using A = Acc<T>;
  Sum(Into<T> to, int64_t step, int64_t rows, int64_t cols, A*& scratch) : to_(to), step_(step), cols_(cols) {
    if constexpr (is_acc<T>) {
      at_ = {to.p, step};
      beta_ = to.add ? 1 : 0;
    } else {
      at_ = {scratch, cols};
      scratch += rows * cols;
    }
  }
  A* row(int64_t i) const { return at_.row(i); }
  int64_t step() const { return at_.step; }
  A beta() const { return beta_; }                     // of the first product; 1 from then on
  void finish(int64_t rows, int64_t all_rows) const {  // rows were summed up; of the rest the gradient is 0
    if constexpr (!is_acc<T>)
      for (int64_t i = 0; i < rows; ++i) Block().each(cols_, [&](int64_t j) { to_(i * step_ + j, at_.row(i)[j]); });
    if (to_.add) return;
    for (int64_t i = rows; i < all_rows; ++i) Block().each(cols_, [&](int64_t j) { to_.p[i * step_ + j] = T(A(0)); });
  }

 private:
  Into<T> to_;
  int64_t step_, cols_;
  Matrix<A> at_;
  A beta_ = 0;
};

template <class T>
int64_t existing_queries(const Attention<T>& a, int64_t example) {
  return std::clamp<int64_t>(a.visible.existing(example) - a.visible.past, 0, a.queries);
}

struct Strip {  // queries from `first` on, and how many keys the last of them sees
  int64_t first, rows, keys;
};
template <class T>
Strip strip_of(const Attention<T>& a, int64_t example, int64_t index) {
  const int64_t most = rows_of_strip(a.visible), first = index * most;
  const int64_t rows = std::clamp<int64_t>(existing_queries(a, example) - first, 0, most);
  return {first, rows, rows > 0 ? a.visible.to(example, first + rows - 1) : 0};
}

// f(unit, scratch) for every unit; each thread has `size` numbers of scratch memory of its own.
template <class A, class F>
void share_out(int64_t units, double flops_of_unit, int64_t size, const F& f) {
  if (units == 0) return;
  constexpr double grain_flops = 1e6;  // repays waking a thread
  const double worth = static_cast<double>(units) * flops_of_unit / grain_flops;
  const int64_t most = std::min<int64_t>(threads(), units);
  const int64_t parts = worth < static_cast<double>(most) ? std::max<int64_t>(1, static_cast<int64_t>(worth)) : most;
  const Tensor scratch = Tensor::empty({parts, size}, dtype_of<A>, Device::cpu);
  parallel_ranges(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part)
      for (int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit)
        f(unit, scratch.ptr<A>() + part * size);
  });
}

template <class T>
double flops(const Attention<T>& a) {  // of a product of all queries of a head with all keys
  return 2.0 * static_cast<double>(a.queries * a.visible.keys * a.head_size);
}

template <class T>
struct ForwardStrips {  // of one head: every `pieces`-th strip
  using A = Acc<T>;
  Attention<T> a;
  T* y;
  A* lse;
  int64_t pieces;

  int64_t scratch_size() const {
    const int64_t copies = is_acc<T> ? 0 : (a.queries + 2 * a.visible.keys + most_rows) * a.head_size;
    return rows_of_strip(a.visible) * a.visible.keys + copies;
  }

  void operator()(int64_t unit, A* scratch) const {
    const int64_t example = unit / pieces / a.heads, head = unit / pieces % a.heads, d = a.head_size;
    const int64_t keys = a.visible.existing(example);
    A* const scores = scratch;
    const int64_t most = rows_of_strip(a.visible);
    scratch += most * a.visible.keys;
    const auto q = widened(a.q + a.q_at(example, head, 0), a.q_step, a.queries, d, scratch);
    const auto k = widened(a.k + a.kv_at(example, head, 0), a.kv_step, keys, d, scratch);
    const auto v = widened(a.v + a.kv_at(example, head, 0), a.kv_step, keys, d, scratch);
    for (int64_t index = unit % pieces; index * most < a.queries; index += pieces) {
      const Strip s = strip_of(a, example, index);
      T* const to = y + a.y_at(example, head, s.first);
      A* const log_sums = lse + a.row_at(example, head, s.first);
      Matrix<A> out{scratch, d};
      if constexpr (is_acc<T>) out = {to, a.y_step()};
      if (s.rows > 0) {
        product<false, true>(s.rows, s.keys, d, A(a.scale), q.row(s.first), q.step, k.p, k.step, A(0), scores, s.keys);
        A sums[most_rows];
        for (int64_t i = 0; i < s.rows; ++i)
          log_sums[i] = softmax(scores + i * s.keys, a.visible.to(example, s.first + i), s.keys, sums[i]);
        product<false, false>(s.rows, d, s.keys, A(1), scores, s.keys, v.p, v.step, A(0), out.p, out.step);
        for (int64_t i = 0; i < s.rows; ++i)
          Block().each(d, [&](int64_t c) { to[i * a.y_step() + c] = T(out.row(i)[c] / sums[i]); });
      }
      for (int64_t i = s.rows; i < std::min(most, a.queries - s.first); ++i) {  // queries that do not exist
        Block().each(d, [&](int64_t c) { to[i * a.y_step() + c] = T(A(0)); });
        log_sums[i] = A(-INFINITY);
      }
    }
  }

  // The first n of a row become e^(s − top), the others 0; what is left to do is to divide by their sum. Returns lse.
  static A softmax(A* row, int64_t n, int64_t cols, A& sum) {
    const A top = Block().max(n, [=](int64_t j) { return row[j]; });
    sum = Block().sum(n, [=](int64_t j) { return row[j] = exp(row[j] - top); });
    std::fill(row + n, row + cols, A(0));
    return top + log(sum);
  }
};

template <class T>
struct BackwardStrips {  // of one head, the last strip first: it sees all keys, so that its products write dk and dv
  using A = Acc<T>;
  Attention<T> a;
  AttentionGradient<T> g;

  int64_t scratch_size() const {
    const int64_t copies = is_acc<T> ? 0 : (3 * a.queries + 4 * a.visible.keys) * a.head_size;
    return 2 * most_rows * most_keys + copies;
  }

  void operator()(int64_t unit, A* scratch) const {
    const int64_t example = unit / a.heads, head = unit % a.heads, d = a.head_size;
    const int64_t keys = a.visible.existing(example), queries = existing_queries(a, example);
    A* const scores = scratch;
    A* const slopes = scratch + most_rows * most_keys;
    scratch += 2 * most_rows * most_keys;
    const int64_t q_at = a.q_at(example, head, 0), kv_at = a.kv_at(example, head, 0);
    const auto q = widened(a.q + q_at, a.q_step, queries, d, scratch);
    const auto k = widened(a.k + kv_at, a.kv_step, keys, d, scratch);
    const auto v = widened(a.v + kv_at, a.kv_step, keys, d, scratch);
    const auto dy = widened(g.dy + a.y_at(example, head, 0), a.y_step(), queries, d, scratch);
    const Sum<T> dq({g.dq.p + q_at, g.dq.add}, a.q_step, queries, d, scratch);
    const Sum<T> dk({g.dk.p + kv_at, g.dk.add}, a.kv_step, keys, d, scratch);
    const Sum<T> dv({g.dv.p + kv_at, g.dv.add}, a.kv_step, keys, d, scratch);
    const int64_t most = rows_of_strip(a.visible), last = (queries + most - 1) / most - 1;
    for (int64_t index = last; index >= 0; --index) {
      const Strip s = strip_of(a, example, index);
      const A* const qs = q.row(s.first);
      const A* const dys = dy.row(s.first);
      A means[most_rows];
      for (int64_t i = 0; i < s.rows; ++i) {
        const int64_t at = a.y_at(example, head, s.first + i);
        means[i] = Block().sum(d, [&](int64_t c) { return A(g.dy[at + c]) * A(g.y[at + c]); });
      }
      for (int64_t from = 0; from < s.keys; from += most_keys) {
        const int64_t n = std::min(most_keys, s.keys - from);
        const A* const ks = k.row(from);
        product<false, true>(s.rows, n, d, A(a.scale), qs, q.step, ks, k.step, A(0), scores, n);
        product<false, true>(s.rows, n, d, A(1), dys, dy.step, v.row(from), v.step, A(0), slopes, n);
        for (int64_t i = 0; i < s.rows; ++i) {
          const int64_t seen = std::clamp<int64_t>(a.visible.to(example, s.first + i) - from, 0, n);
          const A log_sum = g.lse[a.row_at(example, head, s.first + i)];
          derive(log_sum, means[i], seen, n, scores + i * n, slopes + i * n);
        }
        const A beta = index == last ? dk.beta() : A(1);
        product<true, false>(n, d, s.rows, A(1), scores, n, dys, dy.step, beta, dv.row(from), dv.step());
        product<true, false>(n, d, s.rows, A(1), slopes, n, qs, q.step, beta, dk.row(from), dk.step());
        product<false, false>(s.rows, d, n, A(1), slopes, n, ks, k.step, from == 0 ? dq.beta() : A(1), dq.row(s.first),
                              dq.step());
      }
    }
    dq.finish(queries, a.queries);
    dk.finish(keys, a.visible.keys);
    dv.finish(keys, a.visible.keys);
  }

  // Of one query: scores become P, and dP becomes dS; of the keys that it does not see both are 0.
  void derive(A log_sum, A mean, int64_t seen, int64_t cols, A* score, A* slope) const {
    const A scale = A(a.scale);
    Block().each(seen, [=](int64_t j) {
      score[j] = exp(score[j] - log_sum);
      slope[j] = scale * score[j] * (slope[j] - mean);
    });
    std::fill(score + seen, score + cols, A(0));
    std::fill(slope + seen, slope + cols, A(0));
  }
};

}  // namespace

template <class T>
void attention_in_strips(const Attention<T>& a, T* y, Acc<T>* lse) {
  const int64_t heads = a.batch * a.heads, most = rows_of_strip(a.visible);
  const int64_t strips = (a.queries + most - 1) / most;
  if (heads == 0 || strips == 0) return;
  const int64_t pieces = std::min(strips, (threads() + heads - 1) / heads);  // too few heads for the threads
  const ForwardStrips<T> forward{a, y, lse, pieces};
  share_out<Acc<T>>(heads * pieces, 2 * flops(a) / static_cast<double>(pieces), forward.scratch_size(), forward);
}

template <class T>
void attention_gradient_in_strips(const Attention<T>& a, const AttentionGradient<T>& g) {
  const BackwardStrips<T> backward{a, g};
  share_out<Acc<T>>(a.batch * a.heads, 5 * flops(a), backward.scratch_size(), backward);
}

#define INSTANTIATE(T)                                                 \
  template void attention_in_strips(const Attention<T>&, T*, Acc<T>*); \
  template void attention_gradient_in_strips(const Attention<T>&, const AttentionGradient<T>&);
INSTANTIATE(double)
INSTANTIATE(float)
INSTANTIATE(Half)
INSTANTIATE(Bfloat16)
#undef INSTANTIATE

}  // namespace tapedeck
