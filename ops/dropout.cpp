// dropout: y = x · m, m = 0 with probability p, else 1 / (1 − p)        dx = dy · m   [Srivastava et al. 2014]
// m is a pure function of (seed, step, site, index), so the backward pass computes it again and keeps nothing.
// Element i is dropped when its random word, number i % 4 of random_bits(seed, step, site, i / 4), is below p · 2³².
#include "engine/random.h"
#include "ops/ops.h"

namespace tapedeck {
namespace {

template <class T>
struct Mask {  // four elements a call: one draw makes four words
  const T* x;
  Into<T> y;
  int64_t n;
  RandomKey key;
  uint32_t threshold;
  double scale;
  HD void operator()(int64_t block) const {
    const Random4 random = random_bits(key.seed, key.step, key.site, uint64_t(block));
    for (int k = 0; k < 4; ++k) {
      const int64_t i = 4 * block + k;
      if (i < n) y(i, random.word[k] < threshold ? Acc<T>(0) : Acc<T>(scale) * Acc<T>(x[i]));
    }
  }
};

struct Rule {
  RandomKey key;
  double p;
  template <class T>
  void apply(const Tensor& x, Into<T> y) const {
    const auto threshold = static_cast<uint32_t>(p * 0x1p32);
    each(x.device(), (x.count() + 3) / 4, Mask<T>{x.ptr<T>(), y, x.count(), key, threshold, 1 / (1 - p)});
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
