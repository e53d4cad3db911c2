// The gpt: its size, its caches, and what it learns.
#include <cmath>
#include <vector>

#include "apps/generate.h"
#include "tests/gpu.h"
#include "tests/program.h"
#include "tests/training.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using test::Training;

namespace {

struct Made {
  explicit Made(const GptShape& shape, Device device = Device::cpu, DType dtype = DType::f64)
      : model(shape), parameters(model, device, dtype, 3) {}
  Gpt model;
  ParameterSet parameters;
};
constexpr GptShape small_shape{.vocabulary = 11, .context = 8, .layers = 2, .heads = 2, .width = 16};

// generate(), without a cache: the whole of what the model may see, anew for every token.
std::vector<int32_t> without_cache(const Gpt& model, std::vector<int32_t> seen, int64_t length, const Sampling& how,
                                   uint64_t seed) {
  const NoTape off;
  std::vector<int32_t> made;
  for (int64_t i = 0; i < length; ++i) {
    if (std::ssize(seen) > model.shape.context) seen.erase(seen.begin(), seen.end() - (model.shape.context + 1) / 2);
    const Tensor logits = model(Tensor::from(seen, {1, std::ssize(seen)}, model.tokens.table.value.device()), {});
    const std::vector<double> all = logits.doubles();
    const double uniform = uniform01(random_bits(seed, static_cast<uint64_t>(i), site_of("generate"), 0).word[0]);
    made.push_back(sample(std::span(all).last(static_cast<size_t>(logits.cols())), how, uniform));
    seen.push_back(made.back());
  }
  return made;
}

}  // namespace

TEST_CASE("a gpt has the parameters that its shape says, with a tied head or one of its own") {
  const int64_t c = 16, block = 12 * c * c + 13 * c, embeddings = (11 + 8) * c;
  Made tied(small_shape);
  CHECK(tied.parameters.count() == embeddings + 2 * block + 2 * c);
  GptShape shape = small_shape;
  shape.tied = false;
  Made untied(shape);
  CHECK(untied.parameters.count() == tied.parameters.count() + 11 * c);
}

// Fault: branches that add up on the stream begin as large as if there were one of them, and deep models diverge.
TEST_CASE("a gpt begins as GPT-2 does: what goes onto the stream is smaller by the root of twice the layers") {
  GptShape shape = small_shape;
  shape.layers = 8, shape.width = 128, shape.heads = 4;
  Made made(shape);
  const auto deviation = [&](const Parameter& p) {
    double squares = 0;
    const std::vector<double> values = p.value.doubles();
    for (const double x : values) squares += x * x;
    return std::sqrt(squares / static_cast<double>(values.size()));
  };
  const GptBlock& block = made.model.blocks.front();
  CHECK(deviation(block.qkv.weight) == doctest::Approx(0.02).epsilon(0.02));
  CHECK(deviation(block.grow.weight) == doctest::Approx(0.02).epsilon(0.02));
  CHECK(deviation(block.mix.weight) == doctest::Approx(0.005).epsilon(0.02));
  CHECK(deviation(block.shrink.weight) == doctest::Approx(0.005).epsilon(0.02));
  CHECK(deviation(block.qkv.bias) == 0);
}

TEST_CASE("with its cache a gpt makes the tokens that it makes without, past its context too") {
  for (const Device device : test::all_devices()) {
    Made made(small_shape, device);
    for (const double temperature : {0.0, 1.0}) {
      std::vector<int32_t> made_tokens;
      generate(made.model, {3, 1, 4}, 30, {.temperature = temperature}, 7,
               [&](int32_t token) { return made_tokens.push_back(token), true; });
      CHECK(made_tokens == without_cache(made.model, {3, 1, 4}, 30, {.temperature = temperature}, 7));
    }
  }
}

// Fault: the head made logits behind every token of a prompt, and all but the last were thrown away.
TEST_CASE("going on with a cache makes the logits behind the last token alone") {
  for (const Device device : test::all_devices()) {
    Made made(small_shape, device);
    const NoTape off;
    std::vector<KeyValueCache> caches = made.model.empty_caches();
    for (const std::vector<int32_t>& ids : {std::vector<int32_t>{3, 1, 4, 1}, {5}}) {
      const Tensor logits = made.model.go_on(Tensor::from(ids, {1, std::ssize(ids)}, device), caches);
      CHECK(logits.shape == Shape{1, 1, small_shape.vocabulary});
    }
  }
}

TEST_CASE("a token does not depend on those after it") {
  Made made(small_shape);
  const NoTape off;
  const auto logits = [&](std::vector<int32_t> ids) {
    return made.model(Tensor::from(ids, {1, std::ssize(ids)}), {}).doubles();
  };
  const std::vector<double> a = logits({1, 2, 3, 4, 5}), b = logits({1, 2, 3, 9, 0});
  CHECK(std::equal(a.begin(), a.begin() + 3 * 11, b.begin()));
  CHECK_FALSE(std::equal(a.begin(), a.begin() + 4 * 11, b.begin()));
}

TEST_CASE("a gpt learns a small task to its known best, and scores whole answers") {
  Training training({{"data", "task:reverse:length=3,symbols=12"},
                     {"layers", "1"},
                     {"heads", "2"},
                     {"width", "32"},
                     {"batch", "32"},
                     {"lr", "0.003"},
                     {"warmup", "10"},
                     {"steps", "400"},
                     {"eval-every", "400"}});
  const Summary summary = training.trainer.run();
  CHECK(summary.model == "gpt");
  CHECK(*summary.final.validation_accuracy > 0.95);
  CHECK(*summary.final.validation_loss < 0.1);
  CHECK(summary.throughput.tokens_per_s == doctest::Approx(6 * *summary.throughput.examples_per_s));
}

TEST_CASE("a gpt on the emulated device, replayed as a graph, has the losses of the cpu within rounding") {
  const auto losses = [](const char* device, const char* graph) {
    Training training({{"data", "task:copy:length=3,symbols=11"},
                       {"layers", "1"},
                       {"heads", "2"},
                       {"width", "8"},
                       {"batch", "8"},
                       {"steps", "6"},
                       {"dropout", "0.1"},
                       {"eval-every", "100"},
                       {"device", device},
                       {"graph", graph}});
    training.trainer.run();
    std::vector<double> all;
    for (const LossSum& loss : training.trainer.state().losses) all.push_back(loss.mean());
    return all;
  };
  const std::vector<double> cpu = losses("cpu", "off"), plain = losses("emulated", "off"),
                            replayed = losses("emulated", "on");
  REQUIRE(cpu.size() == 6);
  for (size_t i = 0; i < 6; ++i) CHECK(plain[i] == doctest::Approx(cpu[i]).epsilon(1e-5));
  CHECK(plain == replayed);
}

TEST_CASE("gradcheck passes every parameter of a gpt") {
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--layers", "2", "--seed", "1"},
                                             {"--layers", "1", "--seed", "4", "--untied", "--dropout", "0.2"},
                                             {"--layers", "1", "--precision", "fp32"},
                                             {"--layers", "1", "--device", "emulated", "--batch", "2"}}) {
    std::vector<std::string> words = {"gradcheck", "--data", "task:copy:length=4,symbols=9", "--heads", "2", "--width",
                                      "16",        "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const test::Outcome outcome = test::tapedeck(words);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == exit_done);
    CHECK(outcome.json()["rows"].size() >= 16);
  }
}

TEST_CASE("a model and data that do not fit each other are refused with what would") {
  CHECK_THROWS_WITH_AS(Training({{"data", "digits"}, {"model", "gpt"}}), doctest::Contains("use --model mlp"),
                       UsageError);
  CHECK_THROWS_WITH_AS(Training({{"data", "task:copy"}, {"model", "mlp"}}), doctest::Contains("use --model gpt"),
                       UsageError);
  CHECK_THROWS_WITH_AS(Training({{"data", "task:copy"}, {"width", "30"}, {"heads", "4"}}),
                       doctest::Contains("--width 32"), UsageError);
  CHECK_THROWS_WITH_AS(Training({{"data", "task:copy"}, {"hidden", "30"}}), doctest::Contains("--hidden"), UsageError);
  CHECK_THROWS_WITH_AS(Training({{"data", "digits"}, {"layers", "3"}}), doctest::Contains("--layers"), UsageError);
}
