// The scaling law against known answers: exact laws, the table of censored runs, and what a bootstrap may claim.
#include "apps/scaling_law.h"

#include "engine/check.h"
#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "apps/censored_normal.h"
#include "apps/damped_newton.h"
#include "apps/scaling_bootstrap.h"
#include "apps/scaling_time.h"
#include "apps/stats.h"
#include "engine/random.h"
#include "tests/mentions.h"
#include "tests/message_of.h"

using namespace tapedeck;
using namespace tapedeck::test;

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Smin = B_crit = 1000; `seeds` runs at each size B_crit·2^k, with so much spread of log S.
std::vector<ScalingRun> made_up(int first_k, int last_k, int seeds, double spread, uint64_t repeat = 0) {
  std::vector<ScalingRun> runs;
  for (int k = first_k; k <= last_k; ++k)
    for (int seed = 0; seed < seeds; ++seed) {
      const Random4 bits = random_bits(7, repeat, site_of("made up runs"),
                                       static_cast<uint64_t>(k + 50) * 100 + static_cast<uint64_t>(seed));
      const double batch = 1000 * std::pow(2, k);
      const double noise = spread * static_cast<double>(normal_pair(bits.word[0], bits.word[1]).first);
      runs.push_back(exact_run(batch, 1000 * (1 + 1000 / batch) * std::exp(noise)));
    }
  return runs;
}

// The runs as evaluations at steps 1.05^k and a cap of so many times Emin examples would have seen them.
std::vector<ScalingRun> watched(const std::vector<ScalingRun>& runs, double cap) {
  std::vector<ScalingRun> out;
  for (const ScalingRun& run : runs) {
    const double most = cap * 1e6 / run.batch;
    const double hit = std::pow(1.05, std::ceil(std::log(run.steps) / std::log(1.05)));
    out.push_back(run.steps > most ? missed_run(run.batch, most) : ScalingRun{run.batch, hit, hit / 1.05, hit});
  }
  return out;
}

double share_missed(const std::vector<ScalingRun>& runs) {
  double missed = 0;
  for (const ScalingRun& run : runs) missed += !run.reached();
  return missed / static_cast<double>(runs.size());
}
}  // namespace

TEST_CASE("log of a normal probability: in the middle, in tails beyond a double, and of short intervals") {
  CHECK_EQ(log_normal_between(-kInfinity, kInfinity), doctest::Approx(0).epsilon(1e-15));
  CHECK_EQ(log_normal_between(-kInfinity, 0), doctest::Approx(std::log(0.5)));
  CHECK_EQ(log_normal_between(-1, 1), doctest::Approx(std::log(0.682689492137086)).epsilon(1e-13));
  CHECK_EQ(log_normal_between(-1.96, kInfinity), doctest::Approx(std::log(0.975002104851780)).epsilon(1e-12));
  CHECK_EQ(log_normal_between(5, kInfinity), doctest::Approx(-15.0649983939887).epsilon(1e-12));  // R: pnorm, log.p
  CHECK_EQ(log_normal_between(40, kInfinity), doctest::Approx(-804.608442013754).epsilon(1e-12));
  CHECK_EQ(log_normal_between(-kInfinity, -40), log_normal_between(40, kInfinity));
  CHECK_EQ(log_normal_between(14.999999, kInfinity), doctest::Approx(log_normal_between(15, kInfinity)).epsilon(1e-6));
  CHECK_EQ(log_normal_between(40, 41), doctest::Approx(log_normal_between(40, kInfinity)).epsilon(1e-12));
  for (const double z : {-30.0, -3.0, 0.0, 2.0, 30.0}) {
    CAPTURE(z);
    const double density = -z * z / 2 - 0.918938533204673;
    for (const double width : {1e-7, 1e-4})
      CHECK_EQ(log_normal_between(z - width / 2, z + width / 2) - std::log(width),
               doctest::Approx(density).epsilon(1e-7));
  }
}

TEST_CASE("derivatives of a run's likelihood are those of differences") {
  struct {
    double low, high;
  } const runs[] = {{0.1, 0.3}, {-kInfinity, 0.2}, {0.5, kInfinity}, {0.2, 0.2}, {3, kInfinity}, {-2, -1.9}};
  for (const auto& run : runs) {
    const double low = run.low, high = run.high, mu = 0.15, tau = -1.2, step = 1e-5;
    CAPTURE(low);
    CAPTURE(high);
    const auto at = [&](double m, double t) { return censored_term(low, high, m, std::exp(t)); };
    const NormalTerm here = at(mu, tau);
    const auto by_mu = [&](double NormalTerm::*what) {
      return (at(mu + step, tau).*what - at(mu - step, tau).*what) / (2 * step);
    };
    const auto by_tau = [&](double NormalTerm::*what) {
      return (at(mu, tau + step).*what - at(mu, tau - step).*what) / (2 * step);
    };
    CHECK_EQ(here.mu, doctest::Approx(by_mu(&NormalTerm::value)).epsilon(1e-6));
    CHECK_EQ(here.tau, doctest::Approx(by_tau(&NormalTerm::value)).epsilon(1e-6));
    CHECK_EQ(here.mu_mu, doctest::Approx(by_mu(&NormalTerm::mu)).epsilon(1e-6));
    CHECK_EQ(here.mu_tau, doctest::Approx(by_tau(&NormalTerm::mu)).epsilon(1e-6));
    CHECK_EQ(here.tau_tau, doctest::Approx(by_tau(&NormalTerm::tau)).epsilon(1e-6));
  }
}

TEST_CASE("damped Newton finds a top where the function is not concave, and on a side of the box") {
  // −Σ (x_i − i)² / (1 + (x_i − i)²): concave only near its top.
  const auto hill = [](const Vector3& x) {
    LocalView out;
    for (size_t i = 0; i < 3; ++i) {
      const double off = x[i] - static_cast<double>(i), s = 1 + off * off;
      out.value -= off * off / s;
      out.gradient[i] = -2 * off / (s * s);
      out.hessian[i][i] = -2 / (s * s) + 8 * off * off / (s * s * s);
    }
    return out;
  };
  const Maximum inside = maximise(hill, {5, -3, 7}, {{-10, -10, -10}, {10, 10, 10}});
  CHECK(inside.converged);
  for (size_t i = 0; i < 3; ++i) CHECK_EQ(inside.at[i], doctest::Approx(i).epsilon(1e-6));
  const Maximum beside = maximise(hill, {5, -3, 7}, {{-10, -10, 3}, {10, 0.5, 10}});
  CHECK(beside.converged);
  CHECK_EQ(beside.at[1], doctest::Approx(0.5));
  CHECK_EQ(beside.at[2], doctest::Approx(3));
  // −10⁶ (x + y)² − (y − 8)² − z²: a ridge of parameters that belong together, across which a clamped one would fall.
  const auto ridge = [](const Vector3& x) {
    const double off = x[0] + x[1], top = x[1] - 8;
    LocalView out = {.value = -1e6 * off * off - top * top - x[2] * x[2], .gradient = {}, .hessian = {}};
    out.gradient = {-2e6 * off, -2e6 * off - 2 * top, -2 * x[2]};
    out.hessian = {{{-2e6, -2e6, 0}, {-2e6, -2e6 - 2, 0}, {0, 0, -2}}};
    return out;
  };
  const Maximum along = maximise(ridge, {0, 0, 1}, {{-100, -5, -9}, {100, 5, 9}});
  CHECK(along.converged);
  CHECK_EQ(along.at[0], doctest::Approx(-5));
  CHECK_LT(along.evaluations, 12);
}

TEST_CASE("scaling law: an exact one is recovered, whatever the unit and however far the sizes reach") {
  for (const double unit : {1e-6, 1.0, 1e7}) {
    CAPTURE(unit);
    std::vector<ScalingRun> runs = made_up(-4, 4, 1, 0);
    for (ScalingRun& run : runs) run.steps *= unit, run.lower *= unit, run.upper *= unit;
    const ScalingLaw law = fit_scaling_law(runs);
    CHECK(law.converged);
    CHECK_EQ(law.b_crit, doctest::Approx(1000).epsilon(1e-6));
    CHECK_EQ(law.smin, doctest::Approx(1000 * unit).epsilon(1e-6));
    CHECK_EQ(law.emin(), doctest::Approx(1e6 * unit).epsilon(1e-6));
    CHECK_EQ(law.steps(1000), doctest::Approx(2000 * unit).epsilon(1e-6));
    CHECK_EQ(law.sigma, doctest::Approx(least_sigma));  // no spread at all: the least
  }
  CHECK_EQ(fit_scaling_law(made_up(3, 7, 1, 0)).b_crit, doctest::Approx(1000).epsilon(1e-5));
  CHECK_EQ(fit_scaling_law(made_up(-9, -2, 1, 0)).b_crit, doctest::Approx(1000).epsilon(1e-5));
}

TEST_CASE("scaling law: evaluations 5 % apart bias nothing, and all their intervals met give the law in their middle") {
  std::vector<ScalingRun> runs = made_up(-4, 4, 1, 0);
  for (ScalingRun& run : runs) run.lower = run.steps / 1.025, run.upper = run.steps * 1.025;
  CHECK_EQ(fit_scaling_law(runs).b_crit, doctest::Approx(1000).epsilon(1e-3));
  const std::vector<ScalingRun> noisy = made_up(-4, 4, 40, 0.1);
  const ScalingLaw exact = fit_scaling_law(noisy), seen = fit_scaling_law(watched(noisy, 1e9));
  CHECK_EQ(exact.sigma, doctest::Approx(0.1).epsilon(0.1));
  CHECK_EQ(seen.b_crit, doctest::Approx(exact.b_crit).epsilon(0.01));
  CHECK_EQ(seen.sigma, doctest::Approx(exact.sigma).epsilon(0.05));
}

// 9 sizes, 5 runs each, 10 % spread. Caps of 6 and 3 times Emin examples make 22 % and 39 % miss, all of them large
// sizes. The figures are those of 1,000 repeats, central 90 %: 1.00 [0.90, 1.11] and 1.00 [0.86, 1.16].
TEST_CASE(
    "scaling law: runs that missed as intervals without end are unbiased, and as results, or left out, they are not") {
  struct {
    double cap, missed, low, high, as_result, dropped;
  } const table[] = {{6, 0.22, 0.90, 1.12, 2.2, 1.01}, {3, 0.39, 0.86, 1.14, 7.8, 1.075}};
  for (const auto& row : table) {
    constexpr int kRepeats = 200;
    std::vector<double> fit, as_result, dropped;
    double missed = 0;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      const std::vector<ScalingRun> runs = watched(made_up(-4, 4, 5, 0.1, static_cast<uint64_t>(repeat)), row.cap);
      missed += share_missed(runs) / kRepeats;
      fit.push_back(fit_scaling_law(runs).b_crit / 1000);
      std::vector<ScalingRun> rest, taken = runs;
      for (ScalingRun& run : taken) run.upper = run.reached() ? run.upper : run.lower;
      for (const ScalingRun& run : runs)
        if (run.reached()) rest.push_back(run);
      as_result.push_back(fit_scaling_law(taken).b_crit / 1000);
      dropped.push_back(fit_scaling_law(rest).b_crit / 1000);
    }
    CAPTURE(row.cap);
    CHECK_EQ(missed, doctest::Approx(row.missed).epsilon(0.05));
    CHECK_EQ(median(fit), doctest::Approx(1).epsilon(0.02));
    CHECK_EQ(quantile(fit, 0.05), doctest::Approx(row.low).epsilon(0.04));
    CHECK_EQ(quantile(fit, 0.95), doctest::Approx(row.high).epsilon(0.04));
    CHECK_EQ(median(as_result), doctest::Approx(row.as_result).epsilon(0.06));
    CHECK_EQ(median(dropped), doctest::Approx(row.dropped).epsilon(0.03));
  }
}

TEST_CASE("scaling law: where the curve does not bend there is no B_crit, and that is said") {
  std::vector<ScalingRun> runs;
  for (const double batch : {1.0, 2.0, 4.0, 8.0}) runs.push_back(exact_run(batch, 800 / batch));
  const ScalingLaw perfect = fit_scaling_law(runs);
  CHECK(perfect.end == ScalingLaw::End::no_floor);
  CHECK_EQ(perfect.b_crit, kInfinity);
  CHECK_EQ(perfect.steps(2), doctest::Approx(400).epsilon(0.01));
  CHECK(perfect.converged);
  for (ScalingRun& run : runs) run = exact_run(run.batch, 100);
  const ScalingLaw flat = fit_scaling_law(runs);
  CHECK(flat.end == ScalingLaw::End::flat);
  CHECK(flat.converged);
  CHECK_EQ(flat.b_crit, 0);
  CHECK_EQ(flat.steps(2), doctest::Approx(100).epsilon(0.01));
}

TEST_CASE("scaling law: fewer than 3 sizes with a run that reached are refused, and so are impossible intervals") {
  std::vector<ScalingRun> runs = made_up(0, 2, 2, 0.1);
  CHECK_NOTHROW(fit_scaling_law(runs));
  runs.push_back({1000, 500, 0, kInfinity});  // says nothing
  const ScalingLaw as_before = fit_scaling_law(made_up(0, 2, 2, 0.1));
  CHECK_EQ(fit_scaling_law(runs).b_crit, doctest::Approx(as_before.b_crit).epsilon(1e-5));
  runs.pop_back();
  runs[0] = missed_run(1000, 50), runs[1] = missed_run(1000, 50);
  CHECK(mentions(message_of([&] { fit_scaling_law(runs); }), {"3 batch sizes", "wants 3 different ones"}));
  runs[0] = {1000, 50, 60, 40};
  CHECK(mentions(message_of([&] { fit_scaling_law(runs); }), {"batch 1000", "(60, 40]"}));
}

TEST_CASE("bootstrap: the same seed gives the same interval, two levels are wider than runs alone, sizes bracket") {
  // Sizes share an offset of 10 % each, runs differ by 1 %: runs drawn alone would not see the offsets.
  std::vector<ScalingRun> runs = made_up(-3, 3, 5, 0.01);
  for (ScalingRun& run : runs) {
    const Random4 bits = random_bits(3, 0, site_of("offset"), static_cast<uint64_t>(run.batch));
    run = exact_run(run.batch,
                    run.steps * std::exp(0.1 * static_cast<double>(normal_pair(bits.word[0], bits.word[1]).first)));
  }
  const ScalingLaw law = fit_scaling_law(runs);
  const Bootstrap once = bootstrap_law(runs, law, 1, 300), again = bootstrap_law(runs, law, 1, 300);
  CHECK_EQ(once.b_crit.low, again.b_crit.low);
  CHECK_EQ(once.b_crit.high, again.b_crit.high);
  CHECK_NE(once.b_crit.low, bootstrap_law(runs, law, 2, 300).b_crit.low);
  CHECK_LT(once.b_crit.low, law.b_crit);
  CHECK_GT(once.b_crit.high, law.b_crit);
  CHECK_GT(std::log(once.b_crit.high / once.b_crit.low), 0.2);  // of runs alone: about 0.04
  CHECK_GT(once.at_least, once.b_crit.low);
  CHECK_LT(once.at_most, once.b_crit.high);

  const auto range = leave_one_out(runs, law);
  REQUIRE(range);
  CHECK_LT(range->low, law.b_crit);
  CHECK_GT(range->high, law.b_crit);
  CHECK_FALSE(leave_one_out(made_up(-1, 1, 3, 0.01), fit_scaling_law(made_up(-1, 1, 3, 0.01))));

  CHECK(bracket(made_up(-2, 1, 1, 0), {1000, 1000, 0.1}).holds());
  CHECK_FALSE(bracket(made_up(-2, 0, 1, 0), {1000, 1000, 0.1}).above);
  CHECK_FALSE(bracket(made_up(-1, 1, 1, 0), {1000, 1000, 0.1}).below);
  std::vector<ScalingRun> missed = made_up(-2, 1, 1, 0);
  missed.back() = missed_run(2000, 10);
  CHECK_FALSE(bracket(missed, {1000, 1000, 0.1}).above);  // a run that missed shows no curve there
}

// Sizes off by 5 % each and runs by 10 % of spread: over 400 repeats of 400 draws 96 %, and 91 to 99 % with 5 to 9
// sizes, 3 to 10 runs each, spread 5 or 10 %, sizes off by 0 or 5 %, without misses or with 39 %.
TEST_CASE("bootstrap: the interval covers the truth about as often as it says") {
  constexpr int kRepeats = 40;
  int covered = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    std::vector<ScalingRun> runs = made_up(-3, 3, 5, 0.1, static_cast<uint64_t>(repeat));
    for (ScalingRun& run : runs) {
      const Random4 bits =
          random_bits(3, static_cast<uint64_t>(repeat), site_of("off"), static_cast<uint64_t>(run.batch));
      run = exact_run(run.batch,
                      run.steps * std::exp(0.05 * static_cast<double>(normal_pair(bits.word[0], bits.word[1]).first)));
    }
    const Bootstrap drawn = bootstrap_law(runs, fit_scaling_law(runs), static_cast<uint64_t>(repeat), 200);
    covered += drawn.b_crit.low <= 1000 && 1000 <= drawn.b_crit.high;
  }
  CHECK_GE(covered, 35);
}

TEST_CASE("bootstrap: draws with fewer than 3 sizes are drawn again, and counted") {
  const std::vector<ScalingRun> runs = made_up(-1, 1, 3, 0.1);  // 3 sizes: 6 of 27 draws have them all
  const Bootstrap drawn = bootstrap_law(runs, fit_scaling_law(runs), 1, 200);
  CHECK_EQ(drawn.drawn_again / 200.0, doctest::Approx(21.0 / 6).epsilon(0.15));
}

TEST_CASE("four definitions of the critical size, 90 times apart") {
  const CriticalSizes sizes = critical_sizes(900);
  const auto examples = [](double batch) { return 1 + batch / 900; };  // E/Emin
  CHECK_EQ(examples(sizes.half_efficient), doctest::Approx(2));
  CHECK_EQ(examples(sizes.fifth_more), doctest::Approx(1.2));
  CHECK_EQ(examples(sizes.ninety_efficient), doctest::Approx(1 / 0.9));
  CHECK_EQ(1 + 900 / sizes.near_smin, doctest::Approx(1.1));  // S/Smin
}

TEST_CASE("wall clock: the fastest size is sqrt(a/c B_crit), and the least time what the law gives there") {
  std::vector<ScalingRun> runs = made_up(-4, 4, 1, 0);
  for (ScalingRun& run : runs) run.seconds = run.steps * (0.02 + 1e-5 * run.batch);
  const ScalingLaw law = fit_scaling_law(runs);
  const auto time = fit_time(runs, law);
  REQUIRE(time);
  CHECK_EQ(time->cost.fixed, doctest::Approx(0.02).epsilon(1e-5));
  CHECK_EQ(time->cost.per_example, doctest::Approx(1e-5).epsilon(1e-5));
  CHECK_EQ(time->best_batch, doctest::Approx(std::sqrt(2000 * 1000)).epsilon(1e-4));
  CHECK_EQ(time->best_seconds, doctest::Approx(time->seconds(law, time->best_batch)).epsilon(1e-6));
  for (const double other : {0.9, 1.1}) CHECK_GT(time->seconds(law, time->best_batch * other), time->best_seconds);
  CHECK((time->measured_batch == 1000 || time->measured_batch == 2000));
  CHECK_EQ(time->predicted_there, doctest::Approx(time->measured_seconds).epsilon(1e-4));

  for (ScalingRun& run : runs) run.seconds = run.steps * 0.02;  // a step costs the same whatever its batch
  CHECK_EQ(fit_time(runs, law)->best_batch, kInfinity);
  for (ScalingRun& run : runs) run.seconds = run.batch == 1000 ? 1 : 0;
  CHECK_FALSE(fit_time(runs, law));
}
