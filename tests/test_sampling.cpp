// The next token from logits.
#include "apps/sampling.h"

#include <array>
#include <cmath>
#include <vector>

#include "engine/check.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;

namespace {

// How often each of the tokens comes when the deciding number runs evenly through [0, 1).
std::vector<int> counts(const std::vector<double>& logits, const Sampling& how, int draws = 1000) {
  std::vector<int> of(logits.size());
  for (int i = 0; i < draws; ++i) ++of[static_cast<size_t>(sample(logits, how, (i + 0.5) / draws))];
  return of;
}

const std::vector<double> logits = {std::log(1.0), std::log(2.0), std::log(5.0), std::log(2.0)};

}  // namespace

TEST_CASE("tokens come in proportion to e^(logit / temperature)") {
  CHECK(counts(logits, {}) == std::vector<int>{100, 200, 500, 200});
  CHECK(counts(logits, {.temperature = 0.5}) == std::vector<int>{29, 118, 735, 118});  // squares: 1, 4, 25, 4 of 34
  CHECK(counts(logits, {.temperature = 0}) == std::vector<int>{0, 0, 1000, 0});
}

TEST_CASE("top-k leaves out all but the k likeliest, and what ties with them") {
  CHECK(counts(logits, {.top_k = 1}) == std::vector<int>{0, 0, 1000, 0});
  CHECK(counts(logits, {.top_k = 2}, 900) == std::vector<int>{0, 200, 500, 200});
  CHECK(counts(logits, {.top_k = 4}) == counts(logits, {}));
  CHECK(counts(logits, {.top_k = 9}) == counts(logits, {}));
}

TEST_CASE("very large and infinite logits are fine, NaN is refused in words") {
  CHECK(counts({1e300, 0, 1e300}, {}, 100) == std::vector<int>{50, 0, 50});
  CHECK(counts({-INFINITY, 3, -INFINITY}, {}, 10) == std::vector<int>{0, 10, 0});
  CHECK(sample(std::array{0.0, 1.0}, {}, 1 - 1e-17) == 1);
  CHECK_THROWS_WITH_AS(sample(std::array{0.0, double{NAN}}, {}, 0.5), doctest::Contains("NaN"), Diverged);
}
