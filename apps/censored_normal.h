// A normal number of which only an interval is known, on a log scale: y ~ Normal(μ, σ²) and low < y <= high, so that
// its likelihood is Φ(b) − Φ(a) with a = (low − μ)/σ and b = (high − μ)/σ. Where low == high the number itself is known
// and counts as its density φ(a)/σ: that of a very short interval but for a factor which no parameter moves.
#pragma once

namespace tapedeck {

// log(Φ(b) − Φ(a)) for a < b, either may be infinite. Good to about 1e-10 also where Φ(b) − Φ(a) is no double any more.
double log_normal_between(double a, double b);

// The log likelihood l of one number, with its derivatives by μ and τ = log σ.
struct NormalTerm {
  double value = 0, mu = 0, tau = 0;          // l, ∂l/∂μ, ∂l/∂τ
  double mu_mu = 0, mu_tau = 0, tau_tau = 0;  // second derivatives
  void operator+=(const NormalTerm& other);
};
NormalTerm censored_term(double low, double high, double mu, double sigma);

// n numbers known exactly, by their mean and the sum of their squared deviations from it.
NormalTerm exact_terms(double n, double mean, double squares, double mu, double sigma);

}  // namespace tapedeck
