// dropout: y = x · m, m = 0 with probability p, else 1 / (1 − p)        dx = dy · m   [Srivastava et al. 2014]
// m is a pure function of (seed, step, site, index), so the backward pass computes it again and keeps nothing.
// The step is the key's plus, where it has one, the counter in the device's memory.
// Element i is dropped when its random word, number i % 4 of random_bits(seed, step, site, i / 4), is below p · 2³².
#include "engine/launch.h"
#include "engine/random.h"
#include "engine/trace.h"
#include "ops/ops.h"

namespace tapedeck {
namespace {

template <class T, bool add>
struct Mask {  // a row of `cols` draws, of four elements each, because one draw makes four words
  const T* x;
  T* y;
  RandomKey key;
  uint32_t threshold;  // p · 2³²
  Acc<T> scale;        // 1 / (1 − p)
  int64_t count;
  int64_t cols = 256;
  HD int64_t work() const { return 4 * cols; }
  HD void element(int64_t i, uint32_t word) const {
    const Acc<T> kept = scale * Acc<T>(x[i]);  // read and scaled either way: a select vectorises, a branch does not
    Into<T>{y, add}(i, word < threshold ? Acc<T>(0) : kept);
  }
  HD void operator()(Block b, int64_t row) const {
    const Mask m = *this;  // a copy of one's own, and the counter read once: the loop then vectorises
    const uint64_t step = key.counter ? key.step + uint64_t(*key.counter) : key.step;
    const int64_t first = row * cols, whole = count / 4;
    const auto words = [&](int64_t quad) { return random_bits(m.key.seed, step, m.key.site, uint64_t(quad)); };
    b.each(whole - first < cols ? whole - first : cols, [&](int64_t j) {
      const int64_t quad = first + j;
      const Random4 w = words(quad);
      m.element(4 * quad, w.word[0]);
      m.element(4 * quad + 1, w.word[1]);
      m.element(4 * quad + 2, w.word[2]);
      m.element(4 * quad + 3, w.word[3]);
    });
    if (first + cols > whole)  // the last row: the up to three elements behind the last whole four
      b.each(count % 4, [&](int64_t k) { m.element(4 * whole + k, words(whole).word[k]); });
  }
};

struct Rule {
  RandomKey key;
  double p;

  template <class T>
  void apply(const Tensor& x, Into<T> y) const {
    if (y.add)
      launch<T, true>(x, y.p);
    else
      launch<T, false>(x, y.p);
  }
  template <class T, bool add>
  void launch(const Tensor& x, T* y) const {
    const auto threshold = static_cast<uint32_t>(p * 0x1p32);
    const Mask<T, add> mask{x.ptr<T>(), y, key, threshold, Acc<T>(1 / (1 - p)), x.count()};
    const int64_t draws = (x.count() + 3) / 4;
    rows(x.device(), (draws + mask.cols - 1) / mask.cols, mask);
  }
};

}  // namespace

Tensor dropout(const Tensor& x, double p, const RandomKey& key) {
  CHECK(p >= 0 && p < 1, "dropout: p must be at least 0 and below 1, got {}", p);
  if (p == 0) return x;
  const Rule rule{key, p};
  const Tensor y = Tensor::like(x);
  if (result_needed({&x}))
    with_dtype(x.dtype, [&]<class T>() { rule.apply(x, Into<T>{y.ptr<T>()}); });
  else
    trace_moves(0);
  return record("dropout", y, {&x}, [rule, dx = want(x)](const Tensor& dy) {
    with_dtype(dy.dtype, [&]<class T>() { rule.apply(dy, dx.into<T>()); });
  });
}

}  // namespace tapedeck
