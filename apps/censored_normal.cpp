#include "apps/censored_normal.h"

#include <cmath>

namespace tapedeck {
namespace {

constexpr double kLogRootTwoPi = 0.91893853320467274178;  // log √(2π)
constexpr double kNarrow = 1e-5;                          // of b − a: below it an interval is as good as its middle

double log_density(double z) { return -z * z / 2 - kLogRootTwoPi; }  // log φ(z)

// log Φ(−x) for x >= 0. erfc underflows at x = 38; far out, by its asymptotic series [Abramowitz & Stegun 26.2.12],
// whose first term left out is below 1e-10 from x = 15 on.
double log_upper_tail(double x) {
  if (x < 15) return std::log(std::erfc(x / std::sqrt(2.0)) / 2);
  if (std::isinf(x)) return -x;
  const double r = 1 / (x * x);
  return log_density(x) - std::log(x) + std::log1p(-r * (1 - 3 * r * (1 - 5 * r * (1 - 7 * r))));
}

}  // namespace

double log_normal_between(double a, double b) {
  if (b - a < kNarrow) return log_density((a + b) / 2) + std::log(b - a);
  if (a <= 0 && b >= 0) return std::log((std::erf(b / std::sqrt(2.0)) + std::erf(-a / std::sqrt(2.0))) / 2);
  if (b < 0) return log_normal_between(-b, -a);  // Φ(b) − Φ(a) = Φ(−a) − Φ(−b): both in the upper tail
  const double near = log_upper_tail(a), far = log_upper_tail(b);
  return near + std::log1p(-std::exp(far - near));
}

void NormalTerm::operator+=(const NormalTerm& other) {
  value += other.value, mu += other.mu, tau += other.tau;
  mu_mu += other.mu_mu, mu_tau += other.mu_tau, tau_tau += other.tau_tau;
}

// l = −n log σ − (n (mean − μ)² + squares) / 2σ², without the constant.
NormalTerm exact_terms(double n, double mean, double squares, double mu, double sigma) {
  const double precision = 1 / (sigma * sigma), off = mean - mu;
  const double spread = (n * off * off + squares) * precision;
  return {.value = -n * std::log(sigma) - spread / 2,
          .mu = n * off * precision,
          .tau = spread - n,
          .mu_mu = -n * precision,
          .mu_tau = -2 * n * off * precision,
          .tau_tau = -2 * spread};
}

// With D = Φ(b) − Φ(a), p = φ(a)/D and q = φ(b)/D:  ∂l/∂μ = h/σ, h = p − q;  ∂l/∂τ = k = a·p − b·q;
//   ∂²l/∂μ² = (k − h²)/σ²;  ∂²l/∂μ∂τ = (a²p − b²q − h·k − h)/σ;  ∂²l/∂τ² = a³p − b³q − k − k².
NormalTerm censored_term(double low, double high, double mu, double sigma) {
  const double a = (low - mu) / sigma, b = (high - mu) / sigma;
  if (b - a < kNarrow) return exact_terms(1, (low + high) / 2, 0, mu, sigma);
  const double between = log_normal_between(a, b);
  const double p = std::isinf(a) ? 0 : std::exp(log_density(a) - between);
  const double q = std::isinf(b) ? 0 : std::exp(log_density(b) - between);
  const double x = p == 0 ? 0 : a, y = q == 0 ? 0 : b;  // what has no weight may be infinite
  const double h = p - q, k = x * p - y * q;
  return {.value = between,
          .mu = h / sigma,
          .tau = k,
          .mu_mu = (k - h * h) / (sigma * sigma),
          .mu_tau = (x * x * p - y * y * q - h * k - h) / sigma,
          .tau_tau = x * x * x * p - y * y * y * q - k - k * k};
}

}  // namespace tapedeck
