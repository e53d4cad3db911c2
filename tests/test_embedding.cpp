// What test_ops.cpp does not show of embedding: that its gradient has the same bits however it is computed, and what
// becomes of an id that the table does not have.
#include <cmath>
#include <string>
#include <vector>

#include "ops/ops.h"
#include "tests/gpu.h"

#undef CHECK  // the engine's, which throws; here it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;

namespace {

struct Gradients {
  std::vector<double> table, positions;
  bool operator==(const Gradients&) const = default;
};

// Of Σ r ∘ y in f32, with r of many sizes, so that another order of addition gives other bits.
Gradients gradients(const std::vector<int32_t>& ids, int64_t tokens, int64_t v, int64_t cols, Device device) {
  const auto n = static_cast<int64_t>(ids.size());
  std::vector<float> r(static_cast<size_t>(n * cols));
  for (size_t i = 0; i < r.size(); ++i)
    r[i] = std::sin(static_cast<float>(i)) * std::exp2(static_cast<float>(i * 7 % 23));
  Tensor table = Tensor::full({v, cols}, DType::f32, device, 1);
  Tensor positions = Tensor::full({tokens, cols}, DType::f32, device, 1);
  table.require_gradient();
  positions.require_gradient();
  const Shape shape = {n / tokens, tokens};
  Tape tape;
  const Tensor y = embedding(Tensor::from(ids, shape, device), table, positions);
  tape.backward(sum(mul(y, Tensor::from(r, y.shape, device))));
  return {table.gradient().doubles(), positions.gradient().doubles()};
}

// Some ids are frequent, as the space of a text is, and some never come.
std::vector<int32_t> uneven_ids(int64_t n, int64_t v) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < n; ++i) {
    const auto mixed = static_cast<uint32_t>(i + 1) * 2654435761u >> 16;  // Knuth's multiplicative hash
    ids.push_back(mixed % 4 == 0 ? 3 : static_cast<int32_t>(mixed % v * (mixed % v) / v));
  }
  return ids;
}

}  // namespace

// Fault: the gradient of a table was gathered by atomic additions, whose order, and so whose rounding, differed from
// run to run.
TEST_CASE("embedding's gradient has the same bits in every run, for any thread count and on every device") {
  for (const int64_t v : {65, 3000}) {
    INFO("a table of " << v << " rows");
    const std::vector<int32_t> ids = uneven_ids(40 * 32, v);
    const int before = threads();
    set_threads(1);
    const Gradients expected = gradients(ids, 32, v, 150, Device::cpu);
    for (const int count : {1, 2, 3}) {
      set_threads(count);
      CHECK(gradients(ids, 32, v, 150, Device::cpu) == expected);
    }
    set_threads(before);
    for (const Device device : test::devices_with_lanes())
      CHECK(gradients(ids, 32, v, 150, device).table == expected.table);
    std::vector<int32_t> reversed(ids.rbegin(), ids.rend());  // else the numbers above are too easy to add
    CHECK(gradients(reversed, 32, v, 150, Device::cpu).table != expected.table);
  }
}

// Fault: an id outside the table read, and in the backward pass wrote, memory that was not the table's.
TEST_CASE("embedding refuses an id that the table does not have with its place, or makes its row NaN") {
  for (const Device device : test::all_devices())
    for (const int32_t wrong : {7, -1, INT32_MAX, INT32_MIN}) {
      INFO("id " << wrong << " on " << std::string(name(device)));
      const std::vector<int32_t> ids = {0, 6, 2, 2, wrong, 5};
      Tensor table = Tensor::full({7, 3}, DType::f32, device, 2);
      table.require_gradient();
      Tape tape;
      if (device == Device::cpu) {
        std::string message = "nothing";
        try {
          embedding(Tensor::from(ids, {2, 3}, device), table);
        } catch (const Error& error) {
          message = error.what();
        }
        CHECK(message.find("id " + std::to_string(wrong) + " at place 4, but the table has 7 rows (0…6)") !=
              std::string::npos);
        continue;
      }
      const Tensor y = embedding(Tensor::from(ids, {2, 3}, device), table);
      for (size_t i = 0; i < 18; ++i) CHECK((i / 3 == 4 ? std::isnan(y.doubles()[i]) : y.doubles()[i] == 2));
      tape.backward(sum(y));
      const double counts[] = {1, 0, 2, 0, 0, 1, 1};
      for (size_t i = 0; i < 21; ++i) CHECK(table.gradient().doubles()[i] == counts[i / 3]);
    }
}
