// The parts of a sweep's plan, on results that are made up.

#include <cmath>
#include <limits>
#include <set>

#include "apps/sweep/extra.h"
#include "apps/sweep/knee.h"
#include "apps/sweep/pilot.h"
#include "apps/sweep/sweep_plan.h"
#include "apps/sweep/sweep_result.h"
#include "tests/message_of.h"
#include "tests/noisy_quadratic.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using tapedeck::test::message_of;

namespace {

// L(t) = floor + fall·exp(−t/τ), evaluated at every step.
std::vector<EvaluationPoint> decay(double floor, double fall, double tau, int64_t steps) {
  std::vector<EvaluationPoint> curve;
  for (int64_t t = 1; t <= steps; ++t)
    curve.push_back(
        {t, 32 * t, 0.01 * static_cast<double>(t), floor + fall * std::exp(-static_cast<double>(t) / tau), {}});
  return curve;
}

// A run whose loss is ½·steps/t, which reaches its target, 0.5, at this step, or its cap before.
CellResult run_of(const Cell& cell, double steps) {
  CellResult result;
  const auto first = static_cast<int64_t>(std::ceil(steps));
  const int64_t last = std::min<int64_t>(cell.steps, first + 1);
  for (int64_t t = 1; t <= last; ++t)
    result.curve.push_back({t, t * cell.batch, 0.1 * static_cast<double>(t), 0.5 * steps / static_cast<double>(t), {}});
  result.steps = last, result.examples = last * cell.batch;
  result.train_seconds = result.wall_seconds = 0.1 * static_cast<double>(last);
  result.status = last > first ? CellResult::Status::reached : CellResult::Status::missed;
  return result;
}

CellResult diverged() {
  CellResult result;
  result.status = CellResult::Status::diverged;
  result.steps = 7;
  return result;
}

SweepSettings half_loss(std::vector<int64_t> batches) {
  SweepSettings s;
  s.batches = std::move(batches);
  s.reference_batch = 32, s.reference_rate = 0.01, s.alpha = 1;
  s.targets = Targets{"loss", {0.5}, "given", ""};
  return s;
}

// Steps at a rate: the law, times what the rate is off from the best. Rates from 4 times the best on diverge.
struct MadeUp {
  double smin = 20, b_crit = 100, best_at_reference = 0.02;
  CellResult operator()(const Cell& cell) const {
    const double best = best_at_reference * (1 + b_crit / 32) / (1 + b_crit / static_cast<double>(cell.batch));
    if (cell.rate >= 4 * best) return diverged();
    const double off = std::log2(cell.rate / best);
    return run_of(cell, smin * (1 + b_crit / static_cast<double>(cell.batch)) * (1 + 0.3 * off * off));
  }
};

SweepState all_of(const SweepSettings& settings, const MadeUp& work = {}) {
  SweepState state;
  state.settings = settings;
  for (std::vector<Cell> cells; !(cells = cells_needed(state)).empty();) {
    REQUIRE(state.results.size() < 2000);
    state.add(cells[0], work(cells[0]));
  }
  return state;
}

}  // namespace

TEST_CASE("sweep: the knee of an exponential decay lies where the slope is that of the chord") {
  const auto curve = decay(1, 4, 100, 1000);
  // x + y is least where dy/dx = −1: exp(−t/τ)/(1 − exp(−T/τ)) = τ/T, so t = τ·log(T/τ) but for what is left at T.
  CHECK(knee_step(curve) == doctest::Approx(100 * std::log(10)).epsilon(0.01));
  const double multiples[] = {0.5, 1.5, 3};
  const std::vector<double> losses = losses_behind_knee(curve, multiples);
  REQUIRE(losses.size() == 3);
  CHECK(losses[1] == 1.2);  // 1 + 4·exp(−3.45) = 1.127, rounded up to 2 digits
  CHECK(losses[0] > losses[1]);
  CHECK(losses[1] > losses[2]);
}

TEST_CASE("sweep: a pilot that never falls, or is short, has no knee and says so") {
  CHECK(message_of([] { knee_step(decay(1, -0.5, 100, 500)); }).find("never fell") != std::string::npos);
  CHECK(message_of([] { knee_step(decay(1, 4, 100, 7)); }).find("needs 8") != std::string::npos);
  auto broken = decay(1, 4, 100, 1000);
  for (size_t i = 500; i < broken.size(); ++i) broken[i].loss = NAN;
  CHECK(knee_step(broken) < 500);
}

TEST_CASE("sweep: targets are of one metric, each given once, and their hash tells of a change") {
  const Targets targets = given_targets({{"loss", 0.1}, {"loss", 0.3}, {"loss", 0.2}});
  CHECK(targets.values == std::vector<double>{0.3, 0.2, 0.1});
  CHECK(given_targets({{"accuracy", 0.9}, {"accuracy", 0.8}}).tightest().value == 0.9);
  CHECK(message_of([] { given_targets({{"loss", 0.1}, {"accuracy", 0.9}}); }).find("two metrics") != std::string::npos);
  CHECK(message_of([] { given_targets({{"loss", 0.1}, {"loss", 0.1}}); }).find("twice") != std::string::npos);
  Targets other = targets;
  other.values[1] = 0.21;
  CHECK(other.hash() != targets.hash());
}

TEST_CASE("sweep: a crossing is the interval between two evaluations, confirmed by the next") {
  CellResult result;
  const double losses[] = {0.9, 0.4, 0.9, 0.4, 0.3};  // the first touch is not confirmed
  for (int64_t i = 0; i < 5; ++i)
    result.curve.push_back({10 * (i + 1), 320 * (i + 1), 1.0 + static_cast<double>(i), losses[i], {}});
  result.steps = 50;
  const Crossing at = crossing(result, {"loss", 0.5}, 100);
  CHECK(at.reached);
  CHECK(at.lower == 30);
  CHECK(at.upper == 40);
  CHECK(at.first_touch == 20);
  CHECK(at.seconds == 4);
  const Crossing never = crossing(result, {"loss", 0.1}, 100);
  CHECK(!never.reached);
  CHECK(never.lower == 50);
  CHECK(std::isinf(never.upper));
}

// Fault: treating where a run broke as where it stopped makes it a result.
TEST_CASE("sweep: a run that diverged counts as one that did not reach the target within its cap") {
  const Crossing at = crossing(diverged(), {"loss", 0.5}, 100);
  CHECK(at.lower == 100);
  CHECK(std::isinf(at.upper));
}

TEST_CASE("sweep: the pilot walks to the best rate, and stops where both neighbours are worse") {
  SweepState state;
  state.settings = half_loss({32});
  state.settings.reference_rate = 0.0003;
  std::set<double> rates;
  for (std::vector<Cell> cells; !(cells = pilot_cells_needed(state)).empty();) {
    REQUIRE(rates.size() < 20);
    rates.insert(cells[0].rate);
    state.add(cells[0], MadeUp{}(cells[0]));
  }
  CHECK(rates.size() == 6);  // 0.0003 and 4 times less, then 0.0012, 0.0048, 0.0192 and 0.0768, which diverges
  CHECK(best_pilot(state).cell.rate == doctest::Approx(0.0192));
}

TEST_CASE("sweep: a pilot that cannot reach the target, or diverges everywhere, is said with its values") {
  SweepState state;
  state.settings = half_loss({32});
  state.settings.pilot_steps = 50;
  const auto far = [](const Cell& cell) { return run_of(cell, 1000); };
  const std::string message = message_of([&] {
    for (std::vector<Cell> cells; !(cells = cells_needed(state)).empty();) state.add(cells[0], far(cells[0]));
  });
  CHECK(message.find("did not reach loss=0.5 in 50 steps of 32 examples") != std::string::npos);
  state.results.clear();
  const std::string all_diverge = message_of([&] {
    for (std::vector<Cell> cells; !(cells = cells_needed(state)).empty();) state.add(cells[0], diverged());
  });
  CHECK(all_diverge.find("diverged at every rate") != std::string::npos);
}

TEST_CASE("sweep: the tuned rate is within a step of the grid of the best, wherever the pilot began") {
  for (const double first : {1e-5, 0.02, 3.0}) {
    SweepSettings settings = half_loss({8, 32, 128, 512});
    settings.reference_rate = first;
    const SweepState state = all_of(settings);
    for (const int64_t batch : settings.batches) {
      const Tuning tuned = tuning(state, batch);
      const double best = 0.02 * (1 + 100.0 / 32) / (1 + 100.0 / static_cast<double>(batch));
      REQUIRE(tuned.rate);
      CHECK(std::abs(std::log(*tuned.rate / best)) < std::log(2) / 4);
      CHECK(tuned.edge.empty());
      CHECK(tuned.trials.size() >= 9);
    }
  }
}

TEST_CASE("sweep: rates beyond the highest stable one are not all tried up to the first cap") {
  SweepSettings s = half_loss({32, 1024});
  SweepState state;
  state.settings = s;
  // The best rate is the same at every size; a little above it a run goes nowhere. The centre at 1024 lies there.
  const auto work = [](const Cell& cell) {
    const double off = std::log2(cell.rate / 0.009);
    return run_of(cell, cell.rate > 0.0125 ? 1e9 : (20 + 2000.0 / static_cast<double>(cell.batch)) * (1 + off * off));
  };
  for (std::vector<Cell> cells; !(cells = cells_needed(state)).empty();) state.add(cells[0], work(cells[0]));
  const int64_t longest = first_cap(state, 1024);
  int long_cells = 0;
  std::set<double> rates, beyond, long_rates;  // beyond: too high, and run up to the first cap
  for (const auto& [name, entry] : state.results)
    if (const Cell& cell = entry.first; cell.purpose == Cell::Purpose::tune && cell.batch == 1024) {
      rates.insert(cell.rate);
      if (cell.steps == longest) (cell.rate > 0.0125 ? beyond : long_rates).insert(cell.rate), ++long_cells;
    }
  CHECK(grid_centre(state, 1024) > 0.0125);
  CHECK(beyond.size() == 2);      // the centre and the one below
  CHECK(long_rates.size() == 1);  // the next below, which reaches
  CHECK(long_cells == 2 + s.tuning_seeds);
  CHECK(rates.size() >= 9);
  CHECK(*tuning(state, 1024).rate == doctest::Approx(0.009).epsilon(0.2));
}

// Fault: the same seeds for tuning and for reporting, so that a lucky seed is chosen and then reported.
TEST_CASE("sweep: no seed of a tuning run, a reported run and one of the same size twice is the same") {
  const SweepState state = all_of(half_loss({8, 32, 128, 512}));
  std::map<Cell::Purpose, std::set<int64_t>> seeds;
  for (const auto& [name, entry] : state.results) seeds[entry.first.purpose].insert(entry.first.seed);
  for (const auto& [one, of_one] : seeds)
    for (const auto& [other, of_other] : seeds)
      if (one < other && !(one == Cell::Purpose::pilot && other == Cell::Purpose::tune))
        for (const int64_t seed : of_one) CHECK(!of_other.contains(seed));
  CHECK(seeds[Cell::Purpose::run] == std::set<int64_t>{1, 2, 3, 4, 5});
  CHECK(seeds[Cell::Purpose::again].size() == 5);
}

TEST_CASE("sweep: cells of one stage run in an order that mixes the sizes") {
  SweepState state;
  state.settings = half_loss({8, 32, 128, 512});
  state.settings.rates = {0.01}, state.settings.cap = 1000, state.settings.again = false;
  const std::vector<Cell> cells = cells_needed(state);
  REQUIRE(cells.size() == 20);
  int changes = 0;
  for (size_t i = 1; i < cells.size(); ++i) changes += cells[i].batch != cells[i - 1].batch;
  CHECK(changes >= 10);  // in order of sizes: 3
}

TEST_CASE("sweep: given rates are tried as they are, and one rate is not tuned") {
  SweepSettings settings = half_loss({32, 128});
  settings.rates = {0.01, 0.02, 0.08};
  const SweepState state = all_of(settings);
  CHECK(tuning(state, 32).trials.size() == 3);
  CHECK(tuning(state, 32).rate == 0.02);
  settings.rates = {0.01}, settings.cap = 500;
  const SweepState plain = all_of(settings);
  CHECK(plain.results.size() == 2 * 5 + 5);
  settings.again = false;
  CHECK(all_of(settings).results.size() == 10);
}

// Fault: the pilot tries the middle one alone, which diverges here, and takes caps and targets from that.
TEST_CASE("sweep: the pilot tries each of the given rates and goes by the best, whichever place it has") {
  SweepState state;
  state.settings = half_loss({32, 128});
  state.settings.rates = {0.005, 0.02, 0.08, 0.32, 1.28};
  const std::vector<Cell> pilots = pilot_cells_needed(state);
  REQUIRE(pilots.size() == 5);
  for (size_t i = 0; i < 5; ++i) CHECK(pilots[i].rate == state.settings.rates[i]);
  for (const Cell& cell : pilots) state.add(cell, MadeUp{}(cell));
  CHECK(pilot_cells_needed(state).empty());
  CHECK(best_pilot(state).cell.rate == 0.02);
  state.targets = state.settings.targets;
  CHECK(first_cap(state, 32) == cap_factor * 83);  // 20·(1 + 100/32) = 82.5 steps

  for (const Cell& cell : pilots) state.add(cell, diverged());
  const std::string message = message_of([&] { best_pilot(state); });
  CHECK(message.find("diverged at each of the given rates") != std::string::npos);
  CHECK(message.find("other --rates") != std::string::npos);
}

// Fault: without the runs that missed the same size looked like itself whatever the others did.
TEST_CASE("sweep: the same size twice has no ratio where a run missed, and says how many reached") {
  SweepState state = all_of(half_loss({8, 32, 128, 512}));
  const RunsAgain before = conclude(state, true, 50).again;
  CHECK(before.steps);
  CHECK(before.n == 5);
  CHECK(before.n_again == 5);
  CHECK(before.reached_again == 5);
  const Cell one = runs_again(state).front();
  state.results.at(cell_name(one)).second = run_of(one, 1e9);
  const RunsAgain after = conclude(state, true, 50).again;
  CHECK(!after.steps);
  CHECK(!after.seconds);
  CHECK(after.reached == 5);
  CHECK(after.reached_again == 4);
  CHECK(after.n_again == 5);
}

TEST_CASE("sweep: a larger grid or more seeds add cells and lose none") {
  const SweepState small = all_of(half_loss({8, 32, 128}));
  SweepSettings larger = half_loss({8, 32, 128, 512});
  larger.seeds = 7, larger.again = false;
  const SweepState large = all_of(larger);
  for (const auto& [name, entry] : small.results)
    if (entry.first.purpose != Cell::Purpose::again) CHECK(large.results.contains(name));
}

TEST_CASE("sweep: a size at which every run fails has no rate, says why, and ends its tuning") {
  SweepState state;
  state.settings = half_loss({8, 32, 128, 512});
  for (std::vector<Cell> cells; !(cells = cells_needed(state)).empty();) {
    CellResult result = MadeUp{}(cells[0]);
    if (cells[0].batch == 512) {
      result = CellResult();
      result.status = CellResult::Status::failed, result.reason = "no room", result.out_of_memory = true;
    }
    state.add(cells[0], result);
  }
  const Tuning tuned = tuning(state, 512);
  CHECK(!tuned.rate);
  CHECK(tuned.why_none == "no room");
  const SweepResult result = conclude(state, true, 100);
  CHECK(result.sizes[3].n == 0);
  CHECK(!result.sizes[3].steps);
  REQUIRE(result.tightest());
  CHECK(result.tightest()->fit);  // three sizes are left
}

TEST_CASE("sweep: the law that runs were made of comes back, for each target, with the cost of the rules") {
  const SweepState state = all_of(half_loss({4, 8, 16, 32, 64, 128, 256, 512, 1024}));
  const SweepResult result = conclude(state, true, 200);
  REQUIRE(result.tightest()->fit);
  CHECK(result.tightest()->fit->law.b_crit == doctest::Approx(100).epsilon(0.15));
  CHECK(result.tightest()->fit->law.smin == doctest::Approx(20).epsilon(0.15));
  CHECK(result.tightest()->fit->time);
  const SweepSize& reference = result.sizes[3];
  CHECK(reference.batch == 32);
  CHECK(*reference.linear->efficiency == doctest::Approx(1));
  // At 1,024 the linear rule asks for 32 times the rate, which is far outside of what is tried; the root for 5.7 times.
  CHECK(!result.sizes[8].linear->efficiency);
  REQUIRE(result.sizes[4].linear->efficiency);
  CHECK(*result.sizes[4].linear->efficiency < 1);
  CHECK(!conclude(state, false, 200).tightest()->fit->time);
}

// Fault: a mark on the folder, which no later result was rid of.
TEST_CASE("sweep: seconds are compared where one machine ran the cells of the result one at a time") {
  SweepState state;
  const auto add = [&](int64_t seed, const char* machine, bool side_by_side, CellResult::Status status) {
    CellResult result;
    result.machine = machine, result.side_by_side = side_by_side, result.status = status;
    state.add({Cell::Purpose::run, 32, 0.1, seed, 100}, result);
  };
  using Status = CellResult::Status;
  add(1, "A, 2 threads", false, Status::reached);
  add(2, "A, 2 threads", false, Status::missed);
  add(3, "", false, Status::reached);            // does not tell
  add(4, "B, 1 threads", true, Status::failed);  // has no seconds
  CHECK(why_not_timed(state) == "");
  add(5, "A, 1 threads", false, Status::diverged);
  CHECK(why_not_timed(state).find("(A, 1 threads; A, 2 threads)") != std::string::npos);
  add(6, "A, 2 threads", true, Status::reached);
  CHECK(why_not_timed(state).find("1 of 6 cells ran side by side") != std::string::npos);
}

// Fault: two processes with a --part each on one machine, whose seconds were compared.
TEST_CASE("sweep: seconds are not compared where cells of several processes ran at the same time") {
  SweepState state;
  const auto add = [&](int64_t seed, std::optional<double> began, double seconds) {
    CellResult result;
    result.machine = "A, 1 threads", result.began = began, result.wall_seconds = seconds;
    result.status = CellResult::Status::reached;
    state.add({Cell::Purpose::run, 32, 0.1, seed, 100}, result);
  };
  add(1, 10, 5), add(2, 20, 5), add(3, 15, 5), add(4, std::nullopt, 1000);
  CHECK(why_not_timed(state) == "");
  add(5, 12, 0.5);
  CHECK(why_not_timed(state).find("1 of 5 cells began while another one ran") != std::string::npos);
}

TEST_CASE("sweep: time that is left goes to the size that makes B_crit surer per second") {
  SweepSettings settings = half_loss({8, 64, 512});
  const SweepState state = all_of(settings);
  const auto extra = extra_cell(state);
  REQUIRE(extra);
  CHECK(extra->purpose == Cell::Purpose::run);
  CHECK(extra->seed == 6);     // the next one
  CHECK(extra->batch == 512);  // steps at 8 and 512 bound the curve, and a run at 512 takes a tenth of the steps
}
