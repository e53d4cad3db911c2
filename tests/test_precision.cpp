// Models that compute in 16 bits: what stays in f32, and that they learn what their f32 twins learn.
#include <cmath>

#include "apps/models/gpt.h"
#include "apps/models/mlp.h"
#include "engine/safetensors.h"
#include "tests/gpu.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"
#include "tests/training.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

std::vector<double> norm_gradients(DType dtype, Device device, bool rms, std::vector<double>& y) {
  std::vector<double> row(32);
  for (size_t i = 0; i < row.size(); ++i) row[i] = i % 2 ? -940 : 940;
  Tensor x = cast(Tensor::from(row, {1, 32}), dtype).to(device);
  Tensor gain = Tensor::full({32}, dtype, device, 1.5), bias = Tensor::full({32}, dtype, device, 0);
  for (Tensor* t : {&x, &gain, &bias}) t->require_gradient();
  std::vector<double> slopes(32);
  for (size_t i = 0; i < slopes.size(); ++i) slopes[i] = static_cast<double>(i % 5) - 1;
  Tape tape;
  const Tensor out = rms ? rms_norm(x, gain) : layer_norm(x, gain, bias);
  y = out.doubles();
  tape.backward(sum(mul(out, cast(Tensor::from(slopes, {1, 32}), dtype).to(device))));
  std::vector<double> all = gain.gradient().doubles();
  const std::vector<double> dx = x.gradient().doubles();
  for (const double d : dx) all.push_back(d * 940);  // dx is of the size 1 / deviation
  return all;
}

struct Gradients {
  DType of_weights;
  std::vector<double> flat;
};
Gradients gpt_gradients(DType dtype, Device device, bool tied) {
  const Gpt model({.vocabulary = 11, .context = 9, .layers = 2, .heads = 2, .width = 16, .tied = tied});
  ParameterSet parameters(const_cast<Gpt&>(model), device, dtype, 3);
  std::vector<int32_t> ids, next;
  for (int i = 0; i < 27; ++i) ids.push_back(i * 7 % 11), next.push_back((i * 7 + 3) % 11);
  Tape tape;
  const Tensor logits = model(Tensor::from(ids, {3, 9}, device), {.training = true, .seed = 3});
  const Tensor loss = cross_entropy(reshape(logits, {27, 11}), Tensor::from(next, {27}, device));
  CHECK(loss.dtype == DType::f32);
  tape.backward(loss, 64);
  parameters.complete_gradients();
  return {parameters.gradients().dtype, parameters.gradients().doubles()};
}

}  // namespace

// Fault: the square of a number above 256 was taken in fp16, and the variance overflowed.
TEST_CASE("norms of rows whose variance no 16-bit number holds are right, and so are their gradients") {
  for (const Device device : all_devices())
    for (const bool rms : {false, true}) {
      INFO((rms ? "rms_norm" : "layer_norm") << " on " << name(device));
      std::vector<double> half, single;
      const std::vector<double> got = norm_gradients(DType::f16, device, rms, half);
      const std::vector<double> expected = norm_gradients(DType::f32, device, rms, single);
      for (size_t i = 0; i < half.size(); ++i) CHECK(half[i] / 1.5 == doctest::Approx(i % 2 ? -1 : 1).epsilon(1e-3));
      CHECK(difference(got, expected) < 1e-2);
    }
}

// Fault: gradients of weights that gathered in 16 bits, where the sum over a batch loses its small terms.
TEST_CASE("gradients of a gpt in 16 bits gather in f32 and are those of its f32 twin, but for 16-bit rounding") {
  for (const Device device : all_devices())
    for (const bool tied : {true, false}) {
      const Gradients single = gpt_gradients(DType::f32, device, tied);
      for (const DType dtype : {DType::f16, DType::bf16}) {
        INFO(name(dtype) << " on " << name(device) << ", tied " << tied);
        const Gradients half = gpt_gradients(dtype, device, tied);
        CHECK(half.of_weights == DType::f32);
        const double apart = difference(half.flat, single.flat);
        CHECK(apart < 8 * eps(dtype));
        CHECK(apart > 0);
      }
    }
}

// Fault: weights kept in 16 bits, where an update below a thousandth of a weight is rounded away.
TEST_CASE("updates too small for 16 bits gather in the f32 masters, and ops read their rounded copies") {
  const Mlp model(4, {}, 3, Activation::none, 0);
  for (const Device device : all_devices()) {
    ParameterSet parameters(const_cast<Mlp&>(model), device, DType::f16, 1);
    const Parameter& weight = *parameters.all().front();
    CHECK(weight.master.dtype == DType::f32);
    CHECK(weight.value.dtype == DType::f16);
    Optimizer optimizer(parameters, {.kind = OptimizerRule::Kind::sgd});
    const std::vector<double> before = weight.master.doubles();
    for (int i = 0; i < 64; ++i) {
      parameters.forget_gradients();
      fill(weight.value.grad->sum, 1);
      weight.value.grad->fresh = false;
      optimizer.step(1e-5);
    }
    const std::vector<double> after = weight.master.doubles(), copy = weight.value.doubles();
    for (size_t i = 0; i < after.size(); ++i) {
      CHECK(after[i] == doctest::Approx(before[i] - 64e-5).epsilon(1e-4));
      CHECK(copy[i] == static_cast<double>(float(Half(after[i]))));
    }
  }
}

TEST_CASE("a run in 16 bits learns, keeps its masters in f32 and is scored as it was trained") {
  for (const char* precision : {"fp16", "bf16"}) {
    INFO(precision);
    const TemporaryFolder folder;
    const test::Outcome run =
        tapedeck::test::tapedeck({"train", "--precision", precision, "--steps", "300", "--threads", "1", "--target",
                                  "accuracy=0.95", "--json", "--out", folder / "run"});
    INFO(run.err);
    CHECK(run.code == exit_done);
    const Json summary = run.json();
    CHECK(summary["precision"] == precision);
    CHECK(summary["target"]["reached"] == true);
    const bool scaled = std::string(precision) == "fp16";
    CHECK(summary["loss_scale"]["final"] == (scaled ? Json(65536.0) : Json()));
    CHECK(summary["loss_scale"]["skipped"] == (scaled ? Json(0) : Json()));
    for (const auto& [name, tensor] : from_safetensors(read_file(folder / "run/model.safetensors"), "model"))
      CHECK(tensor.dtype == DType::f32);
    const test::Outcome scored = tapedeck::test::tapedeck({"evaluate", folder / "run", "--json"});
    CHECK(scored.code == exit_done);
    CHECK(scored.json()["accuracy"] == summary["final"]["test_accuracy"]);
  }
}

TEST_CASE("a captured step in 16 bits is the plain one, bit for bit, with accumulation, clipping and dropout") {
  const std::vector<Setting> shared = {{"accumulate", "2"},    {"clip", "0.5"}, {"dropout", "0.1"},
                                       {"device", "emulated"}, {"steps", "4"},  {"batch", "4"}};
  for (std::vector<Setting> options :
       {std::vector<Setting>{{"precision", "bf16"}, {"data", "blobs"}, {"hidden", "16"}},
        {{"precision", "fp16"}, {"data", "task:copy"}, {"layers", "1"}, {"width", "16"}, {"heads", "2"}}}) {
    INFO(options[0].value << " " << options[1].value);
    options.insert(options.end(), shared.begin(), shared.end());
    auto plain = options, captured = options;
    plain.push_back({"graph", "off"}), captured.push_back({"graph", "on"});
    CHECK(trained_weights(plain) == trained_weights(captured));
  }
}

// Fault: with a loss that is never finite the job skipped steps for ever.
TEST_CASE(
    "a run whose forward pass overflows at every scale stops, names step, scale and tensor, and keeps its model") {
  const TemporaryFolder folder;
  const test::Outcome run = tapedeck::test::tapedeck(
      {"train",       "--data", "blobs",   "--loss",      "mse",        "--precision", "fp16",
       "--optimizer", "sgd",    "--lr",    "1e6",         "--schedule", "constant",    "--threads",
       "1",           "--json", "--quiet", "--log-every", "1",          "--out",       folder / "run"});
  INFO(run.err);
  CHECK(run.code == exit_diverged);
  CHECK(contains(run.err, "persistent overflow at step "));
  CHECK(contains(run.err, "30 steps in a row"));
  CHECK(contains(run.err, "output of linear at mlp."));
  const Json summary = run.json();
  CHECK(summary["status"] == "diverged");
  CHECK(summary["loss_scale"]["skipped"] == 30);
  for (const auto& [name, tensor] : from_safetensors(read_file(folder / "run/model.safetensors"), "model"))
    for (const double x : tensor.doubles()) CHECK(std::isfinite(x));
  const std::string metrics = read_file(folder / "run/metrics.jsonl");
  CHECK(contains(metrics, "\"loss_scale\":32768.0,\"skipped\":2"));
}

TEST_CASE("a loss scale beside a precision that needs none, or that is no scale, is refused in a sentence") {
  const auto message = [](std::vector<Setting> options) {
    try {
      configure("train", options);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(contains(message({{"loss-scale", "8"}}), "belongs to --precision fp16"));
  CHECK(contains(message({{"precision", "bf16"}, {"loss-scale", "dynamic"}}), "leave it out"));
  for (const char* wrong : {"0", "-1", "inf", "nan", "1e39", "1e37", "8x", "Dynamic", "1e-60", "1e-39", "1e-320"})
    CHECK(contains(message({{"precision", "fp16"}, {"loss-scale", wrong}}),
                   "needs dynamic, or a number from 1.2e-38 to 1.3e36"));
  for (const char* right : {"0.5", "1.2e-38", "1.3e36"})
    CHECK(message({{"precision", "fp16"}, {"loss-scale", right}}).empty());
}
