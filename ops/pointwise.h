// Element-wise formulas and their derivatives, one functor each. A functor knows numbers, not tensors, so that others
// can fuse it: into a composition (Then), into linear's epilogue and backward.
//
//   f(x)             the value y
//   f.slope(x, y)    dy/dx. It reads x only where needs_input, y only where needs_output, and the backward pass keeps
//                    no more than that; what is not needed may be any number.
// A is Acc<T>: float, or double for f64.
#pragma once
#include "engine/gelu.h"
#include "engine/hd.h"
#include "engine/math.h"

namespace tapedeck {

struct Add {
  template <class A>
  HD A operator()(A a, A b) const {
    return a + b;
  }
};
struct Sub {
  template <class A>
  HD A operator()(A a, A b) const {
    return a - b;
  }
};
struct Mul {
  template <class A>
  HD A operator()(A a, A b) const {
    return a * b;
  }
};

// factor · x
struct Scale {
  double factor;
  static constexpr bool needs_input = false, needs_output = false;
  template <class A>
  HD A operator()(A x) const {
    return A(factor) * x;
  }
  template <class A>
  HD A slope(A, A) const {
    return A(factor);
  }
};

// max(x, 0), slope 0 at 0. Both comparisons are false for NaN, which therefore passes, forward and backward.
struct Relu {
  static constexpr bool needs_input = false, needs_output = true;
  template <class A>
  HD A operator()(A x) const {
    return x < 0 ? A(0) : x;
  }
  template <class A>
  HD A slope(A, A y) const {
    return y <= 0 ? A(0) : A(1);
  }
};

// tanh form; formula and source in engine/gelu.h
struct Gelu {
  static constexpr bool needs_input = true, needs_output = false;
  template <class A>
  HD A operator()(A x) const {
    return gelu(x);
  }
  template <class A>
  HD A slope(A x, A) const {
    return gelu_slope(x);
  }
};

// x · Φ(x), Φ(x) = (1 + erf(x/√2)) / 2;   slope Φ(x) + x · φ(x), φ(x) = e^(−x²/2) / √(2π)
struct GeluErf {
  static constexpr bool needs_input = true, needs_output = false;
  template <class A>
  HD static A normal_cdf(A x) {
    return A(0.5) * (1 + erf(x * A(0.70710678118654752440)));
  }
  template <class A>
  HD A operator()(A x) const {
    return x * normal_cdf(x);
  }
  template <class A>
  HD A slope(A x, A) const {
    return normal_cdf(x) + x * (A(0.39894228040143267794) * exp(A(-0.5) * x * x));
  }
};

// x · s, s = 1 / (1 + e^−x);   slope s · (1 + x · (1 − s))   [Elfwing et al. 2017, arXiv:1702.03118]
struct Silu {
  static constexpr bool needs_input = true, needs_output = false;
  template <class A>
  HD A operator()(A x) const {
    return x * sigmoid(x);
  }
  template <class A>
  HD A slope(A x, A) const {
    const A s = sigmoid(x);
    return s * (1 + x * (1 - s));
  }
};

// slope 1 − y²
struct Tanh {
  static constexpr bool needs_input = false, needs_output = true;
  template <class A>
  HD A operator()(A x) const {
    return tanh(x);
  }
  template <class A>
  HD A slope(A, A y) const {
    return 1 - y * y;
  }
};

// slope y · (1 − y)
struct Sigmoid {
  static constexpr bool needs_input = false, needs_output = true;
  template <class A>
  HD A operator()(A x) const {
    return sigmoid(x);
  }
  template <class A>
  HD A slope(A, A y) const {
    return y * (1 - y);
  }
};

// slope y
struct Exp {
  static constexpr bool needs_input = false, needs_output = true;
  template <class A>
  HD A operator()(A x) const {
    return exp(x);
  }
  template <class A>
  HD A slope(A, A y) const {
    return y;
  }
};

// slope 1 / x
struct Log {
  static constexpr bool needs_input = true, needs_output = false;
  template <class A>
  HD A operator()(A x) const {
    return log(x);
  }
  template <class A>
  HD A slope(A x, A) const {
    return 1 / x;
  }
};

// g(f(x)) in one pass; slope g'(f(x)) · f'(x). The value between the two is never stored: where a slope reads it, it is
// computed again from x, and then y is too, so that at most one of x and y is kept.
template <class F, class G>
struct Then {
  F f;
  G g;
  static constexpr bool needs_input = F::needs_input || F::needs_output || G::needs_input;
  static constexpr bool needs_output = G::needs_output && !needs_input;
  template <class A>
  HD A operator()(A x) const {
    return g(f(x));
  }
  template <class A>
  HD A slope(A x, A y) const {
    if constexpr (needs_input) {
      const A between = f(x);
      return g.slope(between, g(between)) * f.slope(x, between);
    } else {
      return g.slope(x, y) * f.slope(x, y);
    }
  }
};
template <class F, class G>
Then(F, G) -> Then<F, G>;

// dy · slope, for a slope that reads nothing, x or y
template <class F>
struct ChainRule {
  F f;
  template <class A>
  HD A operator()(A dy) const {
    return dy * f.slope(dy, dy);
  }
  template <class A>
  HD A operator()(A dy, A kept) const {
    return dy * f.slope(kept, kept);
  }
};

}  // namespace tapedeck
