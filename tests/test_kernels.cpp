// What map, rows and sum_columns do on devices with lanes: packs of elements, rows that share a block, sums in stages.
// Each against the CPU, in both orders of lanes, at once and later.
#include <cmath>
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
      CAPTURE((mode == Mode::eager ? "at once" : "later"));
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
  for (int64_t n : {1, 3, 4, 5, 8, 31, 33, 129, 1023, 2056})
    for (int64_t from = 0; from < 8 && from < n; ++from)
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

}  // namespace
}  // namespace tapedeck
