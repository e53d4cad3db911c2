// How layers begin, and which op they are.
#include <cmath>
#include <vector>

#include "ops/layers.h"

#undef CHECK  // the engine's, which throws; here it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;

namespace {

struct Parts : Module {
  Parts() : Module("parts") {}
  Embedding tokens{*this, "tokens", 65, 32}, places{*this, "places", 16, 32};
  LayerNorm norm{*this, "norm", 32};
  RmsNorm rms{*this, "rms", 32};
  Linear plain{*this, "plain", 32, 64}, small{*this, "small", 32, 64, Activation::none, {Init::Kind::normal, 0.02}};
};

double deviation(const Tensor& x) { return std::sqrt(mean(mul(x, x)).item()); }

}  // namespace

TEST_CASE("layers begin as their papers say") {
  Parts parts;
  const ParameterSet parameters(parts, Device::cpu, DType::f64, 1);
  CHECK(parameters.decayed() == 33 * 64 + 8 * 64 + 2 * 32 * 64);  // matrices alone, each in whole 64s
  const std::vector<double> ones(32, 1), zeros(32, 0);
  CHECK(parts.norm.gain.value.doubles() == ones);
  CHECK(parts.norm.bias.value.doubles() == zeros);
  CHECK(parts.rms.gain.value.doubles() == ones);
  CHECK(parts.small.bias.value.doubles() == std::vector<double>(64, 0));
  // 512 draws and more have a standard deviation within 4 / √(2 · 512) = 12 % of that which they are drawn from.
  CHECK(deviation(parts.tokens.table.value) == doctest::Approx(0.02).epsilon(0.12));
  CHECK(deviation(parts.places.table.value) == doctest::Approx(0.02).epsilon(0.12));
  CHECK(deviation(parts.small.weight.value) == doctest::Approx(0.02).epsilon(0.12));
  CHECK(deviation(parts.plain.weight.value) == doctest::Approx(std::sqrt(1.0 / 32)).epsilon(0.12));
}

TEST_CASE("layers are their ops on their own parameters") {
  Parts parts;
  const ParameterSet parameters(parts, Device::cpu, DType::f64, 1);
  const Tensor ids = Tensor::from(std::vector<int32_t>{1, 64, 0, 1, 7, 7}, {2, 3});
  const Tensor &tokens = parts.tokens.table.value, &places = parts.places.table.value;
  CHECK(parts.tokens(ids).doubles() == embedding(ids, tokens).doubles());
  const Tensor x = parts.tokens(ids, parts.places, 5);
  CHECK(x.doubles() == embedding(ids, tokens, places, 5).doubles());
  const Tensor &gain = parts.norm.gain.value, &bias = parts.norm.bias.value;
  CHECK(parts.norm(x).doubles() == layer_norm(x, gain, bias).doubles());
  CHECK(parts.norm(x, x).normed.doubles() == add_layer_norm(x, x, gain, bias).normed.doubles());
  CHECK(parts.norm(x, x).sum.doubles() == scale(x, 2).doubles());
  CHECK(parts.rms(x).doubles() == rms_norm(x, parts.rms.gain.value).doubles());
  CHECK(parts.rms(x, x).normed.doubles() == add_rms_norm(x, x, parts.rms.gain.value).normed.doubles());
}
