// The gradient noise scale: how large a batch is before its gradient hardly differs from that of all examples.
//   B_simple = tr Σ / |G|²                                 [McCandlish et al. 2018, arXiv:1812.06162, eq. 2.9, App.
//   A.1]
// G is the true gradient and Σ the covariance of one example's. A step of n micro-batches of b examples at the same
// weights gives S1 = mean |g_i|² and S2 = |mean g_i|², and with these
//   |G|² = (n·S2 − S1) / (n − 1)      tr Σ = b·n·(S1 − S2) / (n − 1)
// without bias. Examples that are drawn without being put back pull the micro-batches apart, since what one has the
// others lack: of D in all, |G|² then comes out too small by tr Σ / D, which is added back.
//
// Both are noisy, and a mean of ratios would be biased: numerator and denominator are averaged on their own and then
// divided. The average forgets: a sample's weight halves with every `half_life` examples that come after it.
//
// Gradients must be without loss scale, clipping and weight decay, and steps that were skipped left out.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>

namespace tapedeck {

struct NoiseSample {
  double square;  // |G|²; may be below 0, which is its noise
  double trace;   // tr Σ
};
// From one step. `population`: D, where examples are drawn without being put back; 0: they are. None for n < 2, where
// there is nothing to compare.
std::optional<NoiseSample> noise_sample(double s1, double s2, int64_t n, int64_t b, int64_t population);

struct NoiseEstimate {
  double square, trace;                    // the averages
  std::optional<double> scale, low, high;  // B_simple and its 95 % interval; none: not resolved
  int64_t samples;
};

class NoiseScale {
 public:
  struct Block {
    double square = 0, trace = 0, weight = 0;
    int64_t samples = 0;
  };
  struct State {  // what a run that stops keeps
    double half_life;
    std::deque<Block> blocks = {};  // oldest first, of equal numbers of samples but for the last
    int64_t length = 1;             // samples of a block
    int64_t samples = 0;
  };
  explicit NoiseScale(double half_life) : state_{.half_life = half_life} {}  // examples; above 0
  explicit NoiseScale(const State& state) : state_(state) {}
  const State& state() const { return state_; }

  void add(const NoiseSample& sample, int64_t examples);  // of a step with so many examples

  // The interval is a block jackknife's [Künsch 1989], on log B_simple with Student's t: neighbouring steps share their
  // weights, so blocks of steps are left out in turn, and count by their weight. "Not resolved" where the interval of
  // |G|² includes 0, or there are fewer than 5 blocks; nothing is clamped. None before the first sample.
  std::optional<NoiseEstimate> estimate() const;

 private:
  State state_;
};

}  // namespace tapedeck
