// What map, rows and sum_columns do on devices with lanes: packs of elements, rows that share a block, sums in stages.
// Each against the CPU, in both orders of lanes, at once and later.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "engine/column_sums.h"
#include "engine/launch.h"
#include "engine/tensor.h"
#include "tests/gpu.h"
#include "tests/settings.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

namespace tapedeck {
namespace {

using emulation::Mode;
using emulation::Order;

// body(device): emulated, in both orders of lanes, at once and only when the host waits.
template <class Body>
void emulated(const Body& body) {
  for (Order order : {Order::forward, Order::reverse})
    for (Mode mode : {Mode::eager, Mode::lazy}) {
      CAPTURE((order == Order::forward ? "forward" : "reverse"));
      CAPTURE(static_cast<int>(mode));
      const test::LaneOrder lanes(order);
      const emulation::UseMode use(mode);
      body(Device::emulated);
    }
}

template <class T>
std::vector<T> numbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<T> out(static_cast<size_t>(count));
  for (T& v : out) v = T(uniform(random));
  return out;
}

struct Mix {  // exact on every device: no product that could be rounded once instead of twice
  template <class A, class B>
  HD auto operator()(A a, B b) const {
    return a - b;
  }
};
struct Seven {
  HD float operator()() const { return 7; }
};

// out [from…n) = or += a − b, where the two inputs begin at elements of their own.
template <class Out, class A, class B>
std::vector<double> mapped(Device device, int64_t n, int64_t out_from, int64_t a_from, int64_t b_from, bool add) {
  const Tensor a = Tensor::from(numbers<A>(n, 1), {n}, device), b = Tensor::from(numbers<B>(n, 2), {n}, device);
  const Tensor out = Tensor::from(numbers<Out>(n, 3), {n}, device);
  const int64_t count = n - std::max({out_from, a_from, b_from});
  map(device, count, Into<Out>{out.ptr<Out>() + out_from, add}, Mix{}, a.ptr<A>() + a_from, b.ptr<B>() + b_from);
  return out.doubles();
}

template <class Out, class A, class B>
void check_map(Device device) {
  for (int64_t n : {1, 3, 4, 5, 8, 31, 33, 129, 2056})
    for (int64_t from = 0; from < 8 && from<n; from += n> 1000 ? 3 : 1)
      for (bool add : {false, true}) {
        CAPTURE(n);
        CAPTURE(from);
        CAPTURE(add);
        const auto equal = [&](int64_t out_from, int64_t a_from, int64_t b_from) {
          return mapped<Out, A, B>(device, n, out_from, a_from, b_from, add) ==
                 mapped<Out, A, B>(Device::cpu, n, out_from, a_from, b_from, add);
        };
        CHECK(equal(from, from, from));
        CHECK(equal(from, 0, 0));
        CHECK(equal(0, from, 0));
        CHECK(equal(0, 0, from));
      }
}

void check_maps(Device device) {
  check_map<float, float, float>(device);
  check_map<double, double, double>(device);
  check_map<Half, Half, Half>(device);
  check_map<Bfloat16, Bfloat16, Bfloat16>(device);
  check_map<float, Half, float>(device);
  check_map<Half, float, Bfloat16>(device);
  check_map<float, Bfloat16, double>(device);
}

TEST_CASE("kernels: map moves packs, and single elements where a slice begins between two packs") {
  // Fault: a slice's address is no multiple of 16, which a 128-bit load refuses, or the tail is read in packs too.
  emulated(check_maps);
}

void check_large_map(Device device) {
  const int64_t n = 1'000'003;
  CHECK(mapped<float, Half, float>(device, n, 0, 0, 0, false) ==
        mapped<float, Half, float>(Device::cpu, n, 0, 0, 0, false));
}
TEST_CASE("kernels: a map of a million elements and three") { check_large_map(Device::emulated); }

void check_map_in_place(Device device) {
  for (int64_t n : {1, 33, 129}) {
    const Tensor x = Tensor::from(numbers<float>(n, 1), {n}, device);
    map(device, n, Into<float>{x.ptr<float>(), true}, Mix{}, x.ptr<float>(), x.ptr<float>());
    CHECK(x.doubles() == Tensor::from(numbers<float>(n, 1), {n}).doubles());
    map(device, n, Into<float>{x.ptr<float>(), true}, Mix{}, x.ptr<float>(), x.ptr<float>());
    map(device, n, Into<float>{x.ptr<float>()}, Seven{});
    CHECK(x.values<float>() == std::vector<float>(static_cast<size_t>(n), 7.0f));
  }
}
TEST_CASE("kernels: map may overwrite what it reads, and read nothing") { emulated(check_map_in_place); }

TEST_CASE("kernels: a pack is 16 bytes of the widest type") {
  CHECK_EQ(pack_width<float>, 4);
  CHECK_EQ(pack_width<Half, Bfloat16>, 8);
  CHECK_EQ(pack_width<float, Half>, 4);
  CHECK_EQ(pack_width<Half, Half, double>, 2);
  alignas(16) const float at[8] = {};
  CHECK(packed<4>(at));
  CHECK_FALSE(packed<4>(at + 1));
  CHECK_FALSE(packed<4>(at + 2));
  CHECK(packed<2>(at + 2));
}

template <class T>
struct Describe {  // of each row: its sum and maximum, a second sum through memory, how many lanes it had
  const T* x;
  T* squares;
  T* results;  // [count, 4]
  int64_t cols;
  HD void operator()(Block b, int64_t row) const {
    const T *const in = x + row * cols, *const kept = squares + row * cols;
    T* const square = squares + row * cols;
    const T sum = b.sum(cols, [&](int64_t j) { return in[j]; });
    const T top = b.max(cols, [&](int64_t j) { return in[j]; });
    b.each(cols, [&](int64_t j) { square[j] = in[j] * in[j]; });
    b.sync();
    const T second = b.sum(cols, [&](int64_t j) { return kept[cols - 1 - j]; });  // what another lane wrote
    if (b.lane != 0) return;
    T* const result = results + row * 4;
    result[0] = sum, result[1] = top, result[2] = second, result[3] = T(b.lanes);
  }
};
template <class T>
std::vector<double> described(Device device, int64_t count, int64_t cols) {
  const Tensor x = Tensor::from(numbers<T>(count * cols, 1), {count, cols}, device), squares = Tensor::like(x);
  const Tensor results = Tensor::full({count, 4}, dtype_of<T>, device, -1);
  rows(device, count, Describe<T>{x.ptr<T>(), squares.ptr<T>(), results.ptr<T>(), cols});
  return results.doubles();
}

template <class T>
void check_row_lanes(Device device, int64_t count, int64_t cols, int lanes) {
  CAPTURE(count);
  CAPTURE(cols);
  const std::vector<double> expected = described<T>(Device::cpu, count, cols), got = described<T>(device, count, cols);
  CHECK(got == described<T>(device, count, cols));
  const double unit = 32 * eps(dtype_of<T>) * static_cast<double>(cols);
  int wrong = 0;
  for (size_t at = 0; at < got.size(); at += 4) {
    wrong += !(std::abs(got[at] - expected[at]) <= unit);
    wrong += got[at + 1] != expected[at + 1];
    wrong += !(std::abs(got[at + 2] - expected[at + 2]) <= unit);
    wrong += got[at + 3] != lanes;
  }
  CHECK_EQ(wrong, 0);
}

void check_rows(Device device) {
  for (int64_t count : {1, 3, 4, 5, 31, 33, 129})
    for (int64_t cols : {1, 31, 33, 129}) check_row_lanes<float>(device, count, cols, 32);
  check_row_lanes<double>(device, 7, 1024, 32);
  check_row_lanes<float>(device, 5, 1025, 256);
  check_row_lanes<double>(device, 2, 5000, 256);
  check_row_lanes<float>(device, 1, 4096, 256);
  check_row_lanes<float>(device, 1, 4097, 1024);
  check_row_lanes<double>(device, 1, 9000, 1024);
}
TEST_CASE("kernels: a row is a warp's, four to a block, or a block's, and a single long one is a large block's") {
  // Fault: rows of one block meet at its barrier, where the warps of the last block that have no row never come.
  emulated(check_rows);
}

template <class T>
struct Doubled {  // its sums are those of 2x; on the way it stores 2x, and counts its calls
  const T* x;
  T* y;
  int32_t* calls;
  int64_t cols;
  HD Acc<T> operator()(int64_t i, int64_t j) const {
    const int64_t at = i * cols + j;
    calls[at] += 1;
    const Acc<T> value = 2 * Acc<T>(x[at]);
    y[at] = T(value);
    return value;
  }
};

template <class T>
std::vector<double> column_sums(Device device, int64_t n, int64_t cols, bool add, bool wanted = true) {
  const Tensor x = Tensor::from(numbers<T>(n * cols, 1), {n, cols}, device), y = Tensor::like(x);
  const Tensor calls = Tensor::full({n, cols}, DType::i32, device, 0);
  const Tensor sums = Tensor::from(numbers<T>(cols, 2), {cols}, device);
  sum_columns(device, n, cols, Into<T>{wanted ? sums.ptr<T>() : nullptr, add},
              Doubled<T>{x.ptr<T>(), y.ptr<T>(), calls.ptr<int32_t>(), cols});
  CHECK(calls.values<int32_t>() == std::vector<int32_t>(static_cast<size_t>(n * cols), 1));
  std::vector<double> doubled = x.doubles();
  for (double& v : doubled) v *= 2;
  CHECK(y.doubles() == doubled);
  return sums.doubles();
}

template <class T>
void check_columns(Device device, int64_t n, int64_t cols, bool add) {
  CAPTURE(n);
  CAPTURE(cols);
  CAPTURE(add);
  const std::vector<double> expected = column_sums<T>(Device::cpu, n, cols, add);
  const std::vector<double> got = column_sums<T>(device, n, cols, add);
  CHECK(got == column_sums<T>(device, n, cols, add));
  int wrong = 0;
  for (size_t j = 0; j < got.size(); ++j) {
    const double of_sum = 8 * eps(dtype_of<Acc<T>>) * static_cast<double>(n), of_result = eps(dtype_of<T>);
    wrong += !(std::abs(got[j] - expected[j]) <= of_sum + of_result * std::abs(expected[j]));
  }
  CHECK_EQ(wrong, 0);
}

void check_column_sums(Device device) {
  for (int64_t n : {0, 1, 7, 31, 33, 256, 257, 1000})
    for (int64_t cols : {1, 31, 33, 129})
      for (bool add : {false, true}) check_columns<float>(device, n, cols, add);
  check_columns<double>(device, 600, 33, true);
  check_columns<Half>(device, 600, 33, true);
  check_columns<Bfloat16>(device, 129, 31, false);
  check_columns<float>(device, 70'000, 3, false);
  // Nobody wants the sums: they are as they were.
  CHECK(column_sums<float>(device, 600, 33, false, false) == column_sums<float>(device, 0, 33, true));
}
TEST_CASE("kernels: column sums in two stages ask for each element once and give the same bits every time") {
  // Fault: partial sums meet in an atomic add, in another order every time, or a chunk is summed for each strip again.
  emulated(check_column_sums);
}

TEST_CASE("kernels: the chunks of column sums follow from the number of rows alone") {
  CHECK_EQ(detail::rows_of_chunk(0), 256);
  CHECK_EQ(detail::rows_of_chunk(256 * 256), 256);
  CHECK_EQ(detail::rows_of_chunk(256 * 256 + 1), 512);
  CHECK_EQ(detail::rows_of_chunk(1'000'000), 1024);
}

TEST_CASE("on a GPU: map, rows and column sums give what the CPU gives") {
  if (test::no_gpu()) return;
  for (const auto& check : {check_maps, check_large_map, check_map_in_place, check_rows, check_column_sums})
    check(Device::cuda);
}

}  // namespace
}  // namespace tapedeck
