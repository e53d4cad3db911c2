// dropout: y = x · m, m = 0 with probability p, else 1 / (1 − p)        dx = dy · m   [Srivastava et al. 2014]
// m is a pure function of (seed, step, site, index), so the backward pass computes it again and keeps nothing.
// Element i is dropped when its random word, number i % 4 of random_bits(seed, step, site, i / 4), is below p · 2³².
#include "engine/random.h"
#include "ops/ops.h"

namespace tapedeck {
namespace {

template <class T, bool add>
struct Mask {
  const T* x;
  T* y;
  RandomKey key;
  uint32_t threshold;  // p · 2³²
  Acc<T> scale;        // 1 / (1 − p)
  HD Random4 words(int64_t quad) const { return random_bits(key.seed, key.step, key.site, uint64_t(quad)); }
  HD void element(int64_t i, uint32_t word) const {
    const Acc<T> kept = scale * Acc<T>(x[i]);  // read and scaled either way: a select vectorises, a branch does not
    Into<T>{y, add}(i, word < threshold ? Acc<T>(0) : kept);
  }
};

template <class T, bool add>
struct MaskQuad {  // four elements a call, because one draw makes four words
  Mask<T, add> mask;
  HD void operator()(int64_t quad) const {
    const Random4 words = mask.words(quad);
    mask.element(4 * quad, words.word[0]);
    mask.element(4 * quad + 1, words.word[1]);
    mask.element(4 * quad + 2, words.word[2]);
    mask.element(4 * quad + 3, words.word[3]);
  }
};

template <class T, bool add>
struct MaskRest {  // the up to three elements behind the last whole four
  Mask<T, add> mask;
  int64_t quad;
  HD void operator()(int64_t k) const { mask.element(4 * quad + k, mask.words(quad).word[k]); }
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
    const Mask<T, add> mask{x.ptr<T>(), y, key, threshold, Acc<T>(1 / (1 - p))};
    const int64_t quads = x.count() / 4;
    each(x.device(), quads, MaskQuad<T, add>{mask});
    each(x.device(), x.count() % 4, MaskRest<T, add>{mask, quads});
  }
};

}  // namespace

Tensor dropout(const Tensor& x, double p, const RandomKey& key) {
  CHECK(p >= 0 && p < 1, "dropout: p must be at least 0 and below 1, got {}", p);
  if (p == 0) return x;
  const Rule rule{key, p};
  const Tensor y = Tensor::like(x);
  with_dtype(x.dtype, [&]<class T>() { rule.apply(x, Into<T>{y.ptr<T>()}); });
  return record("dropout", y, {&x}, [rule, dx = want(x)](const Tensor& dy) {
    with_dtype(dy.dtype, [&]<class T>() { rule.apply(dy, dx.into<T>()); });
  });
}

}  // namespace tapedeck
