// Fixed horizons, on results that are made up: several targets on one grid, and a search twice.

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "apps/pages/sweep_page.h"
#include "apps/scaling_report.h"
#include "apps/sweep/pilot.h"
#include "apps/sweep/sweep_report.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;

namespace {

// At the end of K steps the loss is ½·S(B)/K, S(B) = 20·(1 + 100/B), times what the rate is off; seeds differ by 1 %.
// Runs once more need `again` times the steps. Rates from 4 times the best on diverge.
struct Decayed {
  double again = 1;
  static double needs(int64_t batch) { return 20 * (1 + 100 / static_cast<double>(batch)); }
  CellResult operator()(const Cell& cell) const {
    const double best = 0.02 * (1 + 100.0 / 32) / (1 + 100 / static_cast<double>(cell.batch));
    const double off = std::log2(cell.rate / best), seed = 0.01 * static_cast<double>(cell.seed % 5 - 2);
    const double times = (cell.purpose == Cell::Purpose::again ? again : 1) * (1 + 0.3 * off * off + seed);
    CellResult result;
    result.steps = cell.steps, result.examples = cell.steps * cell.batch;
    result.train_seconds = result.wall_seconds = 0.01 * static_cast<double>(cell.steps);
    if (off >= 2) result.status = CellResult::Status::diverged, result.reason = "the rate is too high";
    for (int64_t t = 1; t <= cell.steps; ++t)
      result.curve.push_back(
          {t, t * cell.batch, 0.01 * static_cast<double>(t), 0.5 * needs(cell.batch) / double(t) * times, {}});
    return result;
  }
};

SweepSettings horizons(std::vector<double> targets, std::vector<int64_t> batches = {8, 32, 128, 512}) {
  SweepSettings s;
  s.batches = std::move(batches);
  s.reference_batch = 32, s.reference_rate = 0.01, s.alpha = 1;
  s.targets = Targets{"loss", std::move(targets), "given", ""};
  s.horizon = true;
  return s;
}

void run_all(SweepState& state, const Decayed& work = {}) {
  for (std::vector<Cell> cells; !(cells = cells_needed(state)).empty();) {
    REQUIRE(state.results.size() < 3000);
    std::set<std::string> names;
    for (const Cell& cell : cells) CHECK(names.insert(cell_name(cell)).second);  // none is asked for twice
    state.add(cells[0], work(cells[0]));
  }
}

SweepState all_of(const SweepSettings& settings, const Decayed& work = {}) {
  SweepState state;
  state.settings = settings;
  run_all(state, work);
  return state;
}

std::set<int64_t> steps_run(const SweepState& state, int64_t batch, Cell::Purpose purpose) {
  std::set<int64_t> out;
  for (const auto& [name, entry] : state.results)
    if (entry.first.batch == batch && entry.first.purpose == purpose) out.insert(entry.first.steps);
  return out;
}

TargetSearch ended(int64_t failed, std::optional<int64_t> passed) {
  TargetSearch out;
  out.failed = failed, out.passed = passed;
  out.runs = {Cell{Cell::Purpose::run, 8, 0.1, 1, passed.value_or(failed)}};
  return out;
}

SweepContext plain_context() {
  SweepContext out;
  out.model = "mlp", out.data = "digits", out.complete = true;
  return out;
}

}  // namespace

TEST_CASE("sweep: a horizon passes where the mean over seeds does at p < 0.01") {
  const double metrics[] = {0.40, 0.42, 0.41};
  // t = 0.09/(0.01/√3) = 15.59 with 2 degrees of freedom, whose tail is ½ − t/(2√(2 + t²)).
  const double t = 0.09 / (0.01 / std::sqrt(3));
  const HorizonTrial passed = judge_horizon(100, metrics, {"loss", 0.5});
  CHECK(passed.p == doctest::Approx(0.5 - t / (2 * std::sqrt(2 + t * t))).epsilon(1e-6));
  CHECK(passed.passes());
  CHECK(!judge_horizon(100, metrics, {"loss", 0.413}).passes());  // better on the mean alone
  CHECK(judge_horizon(100, metrics, {"loss", 0.4}).p > 0.5);
  CHECK(judge_horizon(100, metrics, {"accuracy", 0.3}).passes());
  CHECK(!judge_horizon(100, std::vector<double>{0.4}, {"loss", 0.5}).passes());
  CHECK(!judge_horizon(100, std::vector<double>{0.4, 0.4, INFINITY}, {"loss", 0.5}).passes());
}

TEST_CASE("sweep: fewer seeds ask for a mean that is farther from the target") {
  CHECK(margin_to_pass(3) == doctest::Approx(6.9646 / std::sqrt(3)).epsilon(1e-4));  // tables of Student's t
  CHECK(margin_to_pass(10) == doctest::Approx(2.8214 / std::sqrt(10)).epsilon(1e-4));
  for (const double off : {0.99, 1.01}) {  // deviation 0.01
    const double mean = 0.5 - 0.01 * off * margin_to_pass(3);
    CHECK(judge_horizon(9, std::vector<double>{mean - 0.01, mean, mean + 0.01}, {"loss", 0.5}).passes() == (off > 1));
  }
}

TEST_CASE("sweep: with horizons the steps of a size lie between the longest that fails and the shortest that passes") {
  // The loss is ½·S(B)/K, so that a target of ½·x is passed at S(B)/x steps.
  const std::vector<double> targets = {2, 1, 0.5};
  const SweepState state = all_of(horizons(targets));
  for (const int64_t batch : state.settings.batches) {
    const HorizonSearch search = horizon_search(state, batch);
    REQUIRE(search.targets.size() == 3);
    CHECK(search.needed.empty());
    for (size_t i = 0; i < targets.size(); ++i) {
      const TargetSearch& one = search.targets[i];
      CAPTURE(batch);
      CAPTURE(targets[i]);
      CHECK(one.target == targets[i]);
      REQUIRE(one.passed);
      const double needs = Decayed::needs(batch) * 0.5 / targets[i];
      CHECK(static_cast<double>(one.failed) < 1.05 * needs);
      CHECK(static_cast<double>(*one.passed) > needs);
      CHECK(static_cast<double>(*one.passed) < 1.5 * needs * 1.05);
      CHECK(one.runs.size() == 5);
    }
  }
  const SweepResult result = conclude(state, true, 200);
  REQUIRE(result.fits.size() == 3);
  for (size_t i = 0; i < targets.size(); ++i) {
    CHECK(result.fits[i].target == targets[i]);
    REQUIRE(result.fits[i].fit);
    CHECK(result.fits[i].fit->data.runs.size() == 4);
    for (size_t size = 0; size < 4; ++size) {
      // Fault: of intervals as wide as the grid B_crit's interval was [61, 61.5], and covered it in 29 of 100 sweeps.
      const TargetSearch& search = result.sizes[size].horizon->targets[i];
      const ScalingRun& run = result.fits[i].fit->data.runs[size];
      CHECK(run.lower == run.upper);
      CHECK(run.upper == doctest::Approx(std::sqrt(static_cast<double>(search.failed * *search.passed))));
      CHECK(run.steps == run.upper);
      // Fault: seconds of the K that passed stood beside the steps of the middle, and the law was 16 % too fast.
      const double seconds_of_k = state.find(search.runs[0])->train_seconds;
      CHECK(run.seconds / run.steps == doctest::Approx(seconds_of_k / static_cast<double>(*search.passed)));
      CHECK(fit_text(*result.fits[i].fit).starts_with("4 horizons at 4 batch sizes, 4 reached"));
    }
    CHECK(result.fits[i].fit->law.b_crit == doctest::Approx(100).epsilon(0.4));  // 4 sizes on a grid of √2
    CHECK(result.fits[i].fit->law.smin == doctest::Approx(10 / targets[i]).epsilon(0.4));
  }
  // What is said of a size is of the tightest.
  CHECK(result.sizes[1].steps->median == static_cast<double>(*result.sizes[1].horizon->tightest().passed));
  CHECK(!result.sizes[1].steps->interval);
}

// Fault: each target on a grid of its own, so that no run serves two.
TEST_CASE("sweep: the horizons of several targets share a grid, their runs and the rate, and more targets lose none") {
  SweepSettings one = horizons({0.5}), two = horizons({0.55, 0.5});
  one.again = two.again = false;
  const SweepState tight = all_of(one), both = all_of(two);
  for (const auto& [name, entry] : tight.results) CHECK(both.results.contains(name));
  for (const int64_t batch : both.settings.batches) {
    const HorizonSearch search = horizon_search(both, batch);
    CHECK(search.tuned.rate == horizon_search(tight, batch).tuned.rate);
    const int64_t first = steps_by_pilot(both, batch);  // of the tightest
    std::set<int64_t> tried;
    for (const TargetSearch& target : search.targets)
      for (const HorizonTrial& trial : target.trials) {
        tried.insert(trial.steps);
        const double place = 2 * std::log2(static_cast<double>(trial.steps) / static_cast<double>(first));
        CHECK(std::abs(place - std::round(place)) < 1.5 / static_cast<double>(trial.steps) * 2);
      }
    CHECK(steps_run(both, batch, Cell::Purpose::run) == tried);
    // 10 % apart the targets are less than a place apart, so that at most one K more is tried.
    CHECK(tried.size() <= steps_run(tight, batch, Cell::Purpose::run).size() + 1);
  }
}

TEST_CASE("sweep: a looser target begins at what the pilot took to it") {
  SweepState state;
  state.settings = horizons({4, 0.5}, {32});
  state.settings.again = false;
  run_all(state);
  const TargetSearch loose = horizon_search(state, 32).targets[0];
  CHECK(loose.trials.size() <= 3);  // from the tightest target's first K on, six places above, it would be 7
  CHECK(*loose.passed == doctest::Approx(Decayed::needs(32) / 8).epsilon(0.6));
}

TEST_CASE("sweep: the middle size's search runs once more with other seeds, and from the same steps on") {
  const SweepState state = all_of(horizons({1, 0.5}));
  CHECK(again_batch(state) == 128);
  const HorizonSearch search = horizon_search(state, 128);
  const auto again = horizon_again(state);
  REQUIRE(again);
  REQUIRE(again->ended());
  CHECK(again->target == 0.5);
  CHECK(again->passed == search.tightest().passed);
  CHECK(again->trials.size() == search.tightest().trials.size());
  std::set<int64_t> seeds;
  for (const auto& [name, entry] : state.results)
    if (entry.first.purpose == Cell::Purpose::again) {
      CHECK(entry.first.batch == 128);
      CHECK(entry.first.rate == *search.tuned.rate);
      seeds.insert(entry.first.seed);
    }
  CHECK(seeds == std::set<int64_t>{2'000'001, 2'000'002, 2'000'003, 2'000'004, 2'000'005});
  const SweepResult result = conclude(state, true, 200);
  CHECK(result.again.batch == 128);
  CHECK(result.again.n == 5);
  REQUIRE(result.again.difference());
  CHECK(result.again.difference()->agree());

  SweepSettings off = horizons({1, 0.5});
  off.again = false;
  const SweepState without = all_of(off);
  CHECK(steps_run(without, 128, Cell::Purpose::again).empty());
  CHECK(conclude(without, true, 200).again.batch == 0);
}

TEST_CASE("sweep: two searches agree where their intervals overlap, and else lie places of √2 apart") {
  const auto places = [](const TargetSearch& a, const TargetSearch& b) {
    const auto d = difference(a, b);
    REQUIRE(d);
    return std::pair(d->places, d->at_least);
  };
  using Places = std::pair<int, bool>;
  CHECK(places(ended(28, 39), ended(28, 39)) == Places{0, false});
  CHECK(places(ended(28, 39), ended(39, 55)) == Places{1, false});
  CHECK(places(ended(39, 55), ended(28, 39)) == Places{-1, false});
  CHECK(places(ended(28, 39), ended(110, 156)) == Places{4, false});
  CHECK(places(ended(0, 39), ended(19, 28)) == Places{0, false});  // every K passed, down to the last
  CHECK(places(ended(2, 3), ended(3, 4)) == Places{1, false});     // rounded to whole steps
  CHECK(places(ended(28, 39), ended(110, {})) == Places{4, true});
  CHECK(places(ended(110, {}), ended(28, 39)) == Places{-4, true});
  CHECK(places(ended(28, {}), ended(39, 55)) == Places{0, false});
  CHECK(!difference(ended(28, {}), ended(28, {})));
  TargetSearch open = ended(28, 39);
  open.needed = open.runs;
  CHECK(!difference(open, ended(28, 39)));
  CHECK(!difference(ended(28, 39), TargetSearch{}));
  CHECK(ended(28, 39).interval() == "(28, 39]");
  CHECK(ended(28, {}).interval() == "more than 28");
  CHECK(open.interval() == "n/a");
}

TEST_CASE("sweep: whether the two searches agree stands in the text, the document and on the page") {
  const auto documents = [](double again) {
    const SweepState state = all_of(horizons({1, 0.5}), {again});
    const SweepResult result = conclude(state, true, 100);
    const Json summary = sweep_json(state, result, plain_context());
    return std::tuple(sweep_text(state, result, plain_context()), summary, sweep_page(summary, Json::object()));
  };
  const auto [same, summary, page] = documents(1);
  CHECK(same.find("the same size twice (batch 128, its search with n = 5 other seeds of each K)") != same.npos);
  CHECK(same.find("which agree, as they should") != same.npos);
  CHECK(same.find("at the looser loss=1: B_crit") != same.npos);
  CHECK(same.find("  steps: (") != same.npos);
  CHECK(summary["again"]["horizons"]["agree"] == true);
  CHECK(summary["again"]["horizons"]["first"]["passed"] == summary["again"]["horizons"]["second"]["passed"]);
  CHECK(summary["again"]["steps"].is_null());
  CHECK(summary["again"]["covers_one"].is_null());
  CHECK(page.find("They agree, as they should") != page.npos);
  CHECK(page.find("there is no interval of their ratio") != page.npos);
  CHECK(page.find("holds</span>: the same size twice") != page.npos);
  CHECK(page.find("B_crit by target") != page.npos);
  CHECK(page.find("missed by step") == page.npos);
  std::set<double> named;
  for (const Json& size : summary["sizes"])
    for (const Json& trial : size["horizons"]) named.insert(trial["target"].get<double>());
  CHECK(named == std::set<double>{1, 0.5});
  for (const Json& size : summary["sizes"]) CHECK(size["horizon_intervals"].size() == 2);

  const auto [other, differing, warning] = documents(2);  // twice the steps: 2 places
  CHECK(other.find("A DIFFERENCE of 2 places of √2") != other.npos);
  CHECK(differing["again"]["horizons"]["agree"] == false);
  CHECK(differing["again"]["horizons"]["places"] == 2);
  CHECK(other.find("a mean over 5 is to be 1.7 of their deviations better") != other.npos);
  CHECK(warning.find("is to be 1.68 deviations of its runs better") != warning.npos);
  CHECK(warning.find("The same size differs from itself here, by 2 places of √2") != warning.npos);
  CHECK(warning.find("does not hold</span>: the same size twice") != warning.npos);
}

TEST_CASE("sweep: a sweep with horizons that is not at its end says what it knows, and a page is made of it") {
  SweepState state;
  state.settings = horizons({1, 0.5});
  const Decayed work;
  std::set<size_t> targets;
  for (std::vector<Cell> cells; !(cells = cells_needed(state)).empty();) {
    state.add(cells[0], work(cells[0]));
    if (state.results.size() % 25 != 0) continue;
    const SweepResult result = conclude(state, true, 50);
    if (result.fits.empty()) continue;
    targets.insert(result.fits.size());
    for (const SweepSize& size : result.sizes)
      if (!size.horizon->tightest().ended()) CHECK(size.n == 0);
    CHECK(!sweep_text(state, result, plain_context()).empty());
    CHECK(sweep_page(sweep_json(state, result, plain_context()), Json::object()).find("</html>") != std::string::npos);
  }
  CHECK(targets == std::set<size_t>{2});
}

// Fault: at a size where nothing runs the search went up to 32 times the steps.
TEST_CASE("sweep: a size at which every run fails ends its searches at once") {
  SweepState state;
  state.settings = horizons({1, 0.5});
  state.settings.rates = {0.02};
  for (std::vector<Cell> cells; !(cells = cells_needed(state)).empty();) {
    REQUIRE(state.results.size() < 1000);
    CellResult result = Decayed{}(cells[0]);
    if (cells[0].batch == 512) result.status = CellResult::Status::failed, result.reason = "no room";
    state.add(cells[0], result);
  }
  const HorizonSearch search = horizon_search(state, 512);
  CHECK(search.tightest().trials.size() == 1);
  CHECK(!search.tightest().passed);
  const SweepResult result = conclude(state, true, 100);
  CHECK(result.sizes[3].n == 0);
  CHECK(result.sizes[3].failed == 5);
  CHECK(result.fits.back().fit);  // three sizes are left
}
