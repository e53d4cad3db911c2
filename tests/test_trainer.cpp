// The trainer: repeatability, accumulation, means by examples, the clock of evaluations.
#include <cmath>

#include "data/loader.h"
#include "ops/ops.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"
#include "tests/training.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

// 30 training rows, so that batches of 8 come as 8, 8, 8, 6.
const Settings thirty_rows = {{"data", "blobs"}, {"validation", "0.9"}, {"test", "0.0925"}, {"hidden", "8"}};

}  // namespace

// Fault: the same seed gave another result from run to run with more than one thread.
TEST_CASE("the same seed gives byte-equal weights from run to run, and nearly the same with other thread counts") {
  const TemporaryFolder folder;
  const auto train = [&](const std::string& name, const char* threads) {
    const Outcome outcome = tapedeck::test::tapedeck(
        {"train", "--data", "digits", "--batch",   "384",   "--hidden",    "96", "--dropout", "0.1",   "--steps",
         "200",   "--seed", "7",      "--threads", threads, "--log-every", "1",  "--quiet",   "--out", folder / name});
    INFO(outcome.err);
    REQUIRE(outcome.code == exit_done);
    return read_file(folder / name + "/model.safetensors");
  };
  const std::string first = train("first", "2");
  CHECK(train("second", "2") == first);
  CHECK(train("third", "2") == first);

  train("one", "1");
  train("four", "4");
  const std::vector<double> one = curve(folder / "one", "train_loss"), four = curve(folder / "four", "train_loss");
  REQUIRE(one.size() == 200);
  REQUIRE(four.size() == 200);
  for (size_t i = 0; i < one.size(); ++i) {
    INFO("step " << i + 1);
    CHECK(four[i] == doctest::Approx(one[i]).epsilon(1e-4));
  }
  CHECK(one.back() < 0.5 * one.front());  // it did train
}

// Fault: the last, partial window of accumulated batches was dropped, and the rate moved with every batch.
TEST_CASE("ten batches in windows of four are three steps, each with its own rate") {
  const TemporaryFolder folder;
  const auto train = [&](const char* accumulate, const std::string& out) {
    const Outcome outcome = tapedeck::test::tapedeck({"train", "--batch", "108", "--accumulate", accumulate, "--epochs",
                                                      "1", "--data", "digits", "--hidden", "8", "--schedule", "linear",
                                                      "--log-every", "1", "--quiet", "--json", "--out", out});
    INFO(outcome.err);
    REQUIRE(outcome.code == exit_done);
    return outcome.json();
  };
  const std::string out = folder / "four";
  const Json four = train("4", out);
  CHECK(four["steps"] == 3);
  CHECK(four["examples"] == 1078);
  const std::vector<double> rates = curve(out, "lr");
  REQUIRE(rates.size() == 3);
  CHECK(rates[0] == doctest::Approx(1e-3));
  CHECK(rates[1] == doctest::Approx(0.55e-3));
  CHECK(rates[2] == doctest::Approx(1e-4));
  std::ifstream lines(out + "/metrics.jsonl");
  std::vector<int64_t> seen;
  for (std::string line; std::getline(lines, line);)
    if (const Json entry = Json::parse(line); entry.contains("lr")) seen.push_back(entry["examples"]);
  CHECK(seen == std::vector<int64_t>{432, 864, 1078});  // 4, 4 and 2 batches

  const Json wide = train("20", folder / "twenty");  // a window larger than the epoch
  CHECK(wide["steps"] == 1);
  CHECK(wide["examples"] == 1078);

  const Outcome none = tapedeck::test::tapedeck({"train", "--accumulate", "0"});
  CHECK(none.code == exit_usage);
  CHECK(contains(none.err, "--accumulate"));
}

// Fault: a partial window was divided by the full window's count, or batches weighed the same whatever they held.
TEST_CASE("accumulated batches make the step that one large batch makes, also where the last is short") {
  const Settings sgd = {{"optimizer", "sgd"}, {"lr", "0.5"}, {"steps", "1"}, {"schedule", "constant"}};
  const Settings blobs = with(sgd, {{"data", "blobs"}, {"hidden", "8"}});
  const auto even = trained_weights(with(blobs, {{"batch", "8"}, {"accumulate", "4"}}));
  CHECK(difference(even, trained_weights(with(blobs, {{"batch", "32"}}))) < 1e-6);
  CHECK(difference(even, trained_weights(with(blobs, {{"batch", "8"}}))) > 1e-4);  // it is not the first batch alone

  for (const char* loss : {"cross_entropy", "mse"}) {
    INFO(loss);
    const Settings ragged = with(with(sgd, thirty_rows), {{"loss", loss}, {"clip", "100"}, {"log-every", "1"}});
    Training cut(with(ragged, {{"batch", "8"}, {"accumulate", "4"}})), whole(with(ragged, {{"batch", "30"}}));
    REQUIRE(cut.problem.data().train.size() == 30);
    const Summary a = cut.trainer.run(), b = whole.trainer.run();
    CHECK(difference(cut.weights(), whole.weights()) < 1e-6);
    CHECK(*a.final.train_loss == doctest::Approx(*b.final.train_loss).epsilon(1e-6));
    CHECK(*a.examples == 30);
    CHECK(*a.steps == 1);
  }
}

// Fault: the mean of the batches' means counts the examples of a short batch more than those of a full one.
TEST_CASE("losses are means over examples, not over batches") {
  // Two parts, 11 rows of mean loss 2 and 101 of mean 1: together 123 / 112 = 1.098214, where the mean of means is 1.5.
  const double share = 11.0 / 112;
  CHECK(share * 2 + (1 - share) * 1 == doctest::Approx(1.098214));

  // Scoring goes in batches of 1,024, so the 1,078 rows of digits' training part come as 1,024 and 54.
  Training training({{"data", "digits"}, {"hidden", "8"}, {"steps", "30"}, {"precision", "fp64"}});
  training.trainer.run();
  const Problem& problem = training.problem;
  std::vector<double> means;
  double sum = 0;
  int64_t count = 0;
  const auto each = [&](std::span<const int32_t> rows, const std::vector<double>& outputs) {
    double batch = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      double total = 0;
      for (size_t k = 0; k < 10; ++k) total += std::exp(outputs[i * 10 + k]);
      const auto label = static_cast<size_t>(problem.data().labels[static_cast<size_t>(rows[i])]);
      batch += std::log(total) - outputs[i * 10 + label];
    }
    means.push_back(batch / static_cast<double>(rows.size()));
    sum += batch;
    count += std::ssize(rows);
  };
  const Score score = problem.score(training.trainer.learner().scoring(), problem.data().train, each);
  REQUIRE(means.size() == 2);
  CHECK(count == 1078);
  CHECK(score.examples == 1078);
  CHECK(score.loss == doctest::Approx(sum / 1078).epsilon(1e-10));
  CHECK(score.loss != doctest::Approx((means[0] + means[1]) / 2).epsilon(1e-6));  // else this shows nothing

  // The 34 batches of an epoch in windows of 33: one step of 1,056 examples and one of 22.
  Training uneven({{"data", "digits"}, {"hidden", "8"}, {"accumulate", "33"}, {"epochs", "1"}, {"precision", "fp64"}});
  const double epoch = *uneven.trainer.run().final.train_loss;
  Training first({{"data", "digits"}, {"hidden", "8"}, {"accumulate", "33"}, {"steps", "1"}, {"precision", "fp64"}});
  const double full = *first.trainer.run().final.train_loss;
  std::vector<int32_t> rest = epoch_order(problem.data().train, 1, 0);
  rest.erase(rest.begin(), rest.begin() + 1056);
  const double rest_loss = problem.score(first.trainer.learner().scoring(), rest).loss;
  CHECK(epoch == doctest::Approx((1056 * full + 22 * rest_loss) / 1078).epsilon(1e-10));
  CHECK(epoch != doctest::Approx((full + rest_loss) / 2).epsilon(1e-4));

  // Known answer: a model whose outputs miss by 1 in 1,024 rows and by 3 in 54 has the mean (1024 + 9 · 54) / 1078.
  Training numbers({{"data", "digits"}, {"loss", "mse"}, {"precision", "fp64"}, {"steps", "1"}});
  const Dataset& data = numbers.problem.data();
  size_t done = 0;
  const Model misses = [&](const Tensor& x) {
    std::vector<double> out;
    for (int64_t i = 0; i < x.rows(); ++i, ++done)
      out.push_back(data.labels[static_cast<size_t>(data.train[done])] + (done < 1024 ? 1.0 : 3.0));
    return Tensor::from(out, {x.rows(), 1});
  };
  CHECK(numbers.problem.score(misses, data.train).loss == doctest::Approx((1024.0 + 9 * 54) / 1078).epsilon(1e-12));
}

// Fault: the largest of ten NaN is the first, so a broken model had all of class 0 right.
TEST_CASE("outputs that are NaN name no class") {
  Training training({{"data", "digits"}, {"hidden", "8"}});
  const Model broken = [](const Tensor& x) { return Tensor::full({x.rows(), 10}, DType::f32, Device::cpu, NAN); };
  CHECK(training.problem.score(broken, training.problem.data().test).accuracy == 0.0);
}

// Fault: a seed that reaches one of initial weights, order and masks, but not all three.
TEST_CASE("a run is its seed's weights, order and masks step by step, warming up changes nothing of it") {
  for (const uint64_t seed : {4, 9}) {
    Training training({{"data", "blobs"},
                       {"hidden", "8"},
                       {"steps", "3"},
                       {"dropout", "0.25"},
                       {"schedule", "constant"},
                       {"seed", std::to_string(seed)}});
    training.trainer.run();

    // The same three steps by hand, without a warm-up.
    const Problem& problem = training.problem;
    Learner learner(training.config, problem, seed, training.device, training.dtype);
    Loader loader(problem.data().train, training.config.batch, seed);
    for (uint64_t step = 0; step < 3; ++step) {
      learner.parameters.forget_gradients();
      learn(learner, problem, problem.load(loader.next()), {true, seed, step}, 1);
      learner.optimizer.step(training.config.lr);
    }
    CHECK(learner.parameters.values().doubles() == training.weights());
  }
}

TEST_CASE("training stops when the validation loss has not improved for --patience evaluations") {
  Training training({{"data", "blobs"},
                     {"hidden", "8"},
                     {"optimizer", "sgd"},
                     {"lr", "1e-30"},
                     {"steps", "1000"},
                     {"eval-every", "5"},
                     {"patience", "3"}});  // the rate is too small to change a weight
  const Summary summary = training.trainer.run();
  CHECK(*summary.steps == 20);  // the first evaluation is the best, three follow
  CHECK(summary.status == "done");
  CHECK(contains(training.trainer.reason(), "step 20"));
  CHECK(contains(training.trainer.reason(), "3 evaluations"));

  Training improving({{"data", "blobs"}, {"hidden", "8"}, {"steps", "60"}, {"eval-every", "20"}, {"patience", "3"}});
  CHECK(*improving.trainer.run().steps == 60);
  CHECK(improving.trainer.reason().empty());
}

TEST_CASE("a run ends at the cap that comes first") {
  const Settings blobs = {{"data", "blobs"}, {"hidden", "4"}, {"batch", "800"}};
  Training by_epochs(with(blobs, {{"epochs", "2"}, {"steps", "100"}})),
      by_steps(with(blobs, {{"epochs", "50"}, {"steps", "7"}}));
  const Summary epochs = by_epochs.trainer.run(), steps = by_steps.trainer.run();
  CHECK(*epochs.steps == 8);
  CHECK(*epochs.epochs == 2);
  CHECK(*steps.steps == 7);
  CHECK(*steps.examples == 5600);
}
