// each, map, rows and Block's reductions on every device, in both orders of lanes, against plain loops in double.
#include "engine/launch.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "engine/column_sums.h"
#include "engine/tensor.h"
#include "tests/settings.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

namespace tapedeck {
namespace {

using emulation::Order;
using test::LaneOrder;
using test::Threads;

const std::vector<int64_t> sizes = {0, 1, 2, 31, 33, 255, 256, 257, 1023, 2047};

// body(device): on the CPU with 1, 2 and 8 threads, and emulated in both orders.
template <class Body>
void everywhere(const Body& body) {
  for (int count : {1, 2, 8}) {
    CAPTURE(count);
    const Threads threads(count);
    body(Device::cpu);
  }
  for (Order order : {Order::forward, Order::reverse}) {
    CAPTURE((order == Order::forward ? "forward" : "reverse"));
    const LaneOrder lanes(order);
    body(Device::emulated);
  }
}

std::vector<float> numbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& v : out) v = uniform(random);
  return out;
}

struct CountVisits {
  int32_t* visits;
  HD void operator()(int64_t i) const { visits[i] += 1; }
};

TEST_CASE("launch: each visits every index once, and no other") {
  everywhere([](Device device) {
    std::vector<int64_t> all = sizes;
    if (device == Device::cpu) all.insert(all.end(), {16384 * 2 - 1, 16384 * 2, 16384 * 8 + 3});  // threads share these
    for (int64_t n : all) {
      const Tensor visits = Tensor::full({n + 5}, DType::i32, device, 0);
      each(device, n, CountVisits{visits.ptr<int32_t>()});
      std::vector<int32_t> expected(static_cast<size_t>(n + 5), 0);
      std::fill_n(expected.begin(), n, 1);
      CHECK(visits.values<int32_t>() == expected);
    }
  });
}

struct Weighted {
  template <class A>
  HD A operator()(A a, A b) const {
    return a + 2 * b;
  }
};
struct Seven {
  HD float operator()() const { return 7; }
};
struct Twice {
  template <class A>
  HD A operator()(A a) const {
    return a + a;
  }
};

TEST_CASE("launch: map writes or adds, may overwrite its input, and may have none") {
  everywhere([](Device device) {
    for (int64_t n : sizes) {
      const std::vector<float> a = numbers(n, 1), b = numbers(n, 2);
      const Tensor ta = Tensor::from(a, {n}, device), tb = Tensor::from(b, {n}, device);
      const Tensor y = Tensor::empty({n}, DType::f32, device);
      map(device, n, Into<float>{y.ptr<float>()}, Weighted{}, ta.ptr<float>(), tb.ptr<float>());
      std::vector<float> expected(a.size());
      for (size_t i = 0; i < a.size(); ++i) expected[i] = a[i] + 2 * b[i];
      CHECK(y.values<float>() == expected);

      map(device, n, Into<float>{y.ptr<float>(), true}, Seven{});
      for (float& v : expected) v += 7;
      CHECK(y.values<float>() == expected);

      map(device, n, Into<float>{y.ptr<float>()}, Twice{}, y.ptr<float>());
      for (float& v : expected) v += v;
      CHECK(y.values<float>() == expected);
    }
  });
}

TEST_CASE("launch: map converts: 16-bit numbers are computed in float and rounded once") {
  everywhere([](Device device) {
    const Tensor a = Tensor::from<Half>({Half(1.0f), Half(0.333f)}, {2}, device);
    const Tensor y = Tensor::empty({2}, DType::f16, device);
    map(device, 2, Into<Half>{y.ptr<Half>()}, Weighted{}, a.ptr<Half>(), a.ptr<Half>());
    CHECK_EQ(y.doubles()[0], 3);
    CHECK_EQ(y.doubles()[1], static_cast<double>(static_cast<float>(Half(3 * static_cast<float>(Half(0.333f))))));
  });
}

template <class T>
struct RowStatistics {  // sum, max, and the sum of squares through a second pass over what each() wrote
  const T* x;
  T *sums, *tops, *squares, *scratch;
  int64_t cols;
  HD void operator()(Block b, int64_t row) const {
    const T* const in = x + row * cols;
    T* const square = scratch + row * cols;
    const auto sum = b.sum(cols, [&](int64_t j) { return in[j]; });
    const auto top = b.max(cols, [&](int64_t j) { return in[j]; });
    b.each(cols, [&](int64_t j) { square[j] = in[j] * in[j]; });
    b.sync();
    // Lanes read what their neighbours wrote.
    const auto squares_sum = b.sum(cols, [&](int64_t j) { return square[cols - 1 - j]; });
    if (b.lane == b.lanes - 1) sums[row] = sum, tops[row] = top, squares[row] = squares_sum;
  }
};

template <class T>
void check_rows(Device device, int64_t count, int64_t cols) {
  CAPTURE(count);
  CAPTURE(cols);
  const std::vector<float> source = numbers(count * cols, 3);
  const std::vector<T> x(source.begin(), source.end());
  const DType dtype = dtype_of<T>;
  const Tensor tx = Tensor::from(x, {count, cols}, device), scratch = Tensor::like(tx);
  const Tensor sums = Tensor::empty({count}, dtype, device), tops = Tensor::like(sums), squares = Tensor::like(sums);
  rows(device, count,
       RowStatistics<T>{tx.template ptr<T>(), sums.template ptr<T>(), tops.template ptr<T>(), squares.template ptr<T>(),
                        scratch.template ptr<T>(), cols});
  const auto got_sums = sums.doubles(), got_tops = tops.doubles(), got_squares = squares.doubles();
  int wrong = 0;
  for (int64_t row = 0; row < count; ++row) {
    double sum = 0, size = 0, square = 0, top = -std::numeric_limits<double>::infinity();
    for (int64_t j = 0; j < cols; ++j) {
      const double v = static_cast<double>(x[static_cast<size_t>(row * cols + j)]);
      sum += v, size += std::abs(v), square += v * v, top = std::max(top, v);
    }
    const double unit = eps(dtype) * (0.5 * static_cast<double>(cols) + 1);  // of a sum of cols rounded terms
    wrong += !(std::abs(got_sums[row] - sum) <= unit * size);
    wrong += !(std::abs(got_squares[row] - square) <= unit * square);
    wrong += got_tops[row] != top;
  }
  CHECK_EQ(wrong, 0);
}

TEST_CASE("launch: Block's sum and max equal the plain loops for rows of 1 to 2,000 columns") {
  std::vector<int64_t> lengths;
  for (int64_t cols = 0; cols <= 70; ++cols) lengths.push_back(cols);
  lengths.insert(lengths.end(), {127, 128, 129, 255, 256, 257, 511, 1000, 1023, 1024, 1025, 1279, 1280, 1281, 2000});
  everywhere([&](Device device) {
    for (int64_t cols : lengths) {
      check_rows<float>(device, 3, cols);
      check_rows<double>(device, 1, cols);
    }
  });
}

TEST_CASE("launch: any number of rows, none, and more threads than rows") {
  everywhere([](Device device) {
    for (int64_t count : {0, 1, 2, 7, 33, 257}) check_rows<float>(device, count, 40);
    check_rows<float>(device, 3, 9000);  // each row repays a thread, and there are fewer rows than threads
  });
}

template <class T>
struct ColumnSums {  // one strip of `cols` columns per Block
  const T* x;
  T* sums;
  int64_t count, row_length;
  int cols;
  HD void operator()(Block b, int64_t strip) const {
    const int64_t first = strip * cols;
    const int width = static_cast<int>(row_length - first < cols ? row_length - first : cols);
    b.column_sums<T>(
        count, width, [&](int64_t i, int j) { return x[i * row_length + first + j]; },
        [&](int j, T total) { sums[first + j] = total; });
  }
};

TEST_CASE("launch: column sums for any number of rows and columns") {
  everywhere([](Device device) {
    for (int64_t count : {0, 1, 5, 100})
      for (int64_t cols : {1, 31, 32, 33, 63, 64, 65, 255, 256, 257, 511, 512, 700}) {
        const std::vector<float> x = numbers(count * cols, 4);
        const Tensor tx = Tensor::from(x, {count, cols}, device), sums = Tensor::empty({cols}, DType::f32, device);
        const int width = column_width(device, cols);
        rows(device, (cols + width - 1) / width,
             ColumnSums<float>{tx.ptr<float>(), sums.ptr<float>(), count, cols, width});
        std::vector<float> expected(static_cast<size_t>(cols), 0.0f);  // rows in order, so exactly this
        for (int64_t i = 0; i < count; ++i)
          for (int64_t j = 0; j < cols; ++j) expected[j] += x[i * cols + j];
        CHECK(sums.values<float>() == expected);
      }
  });
}

std::vector<int> visits_of(int64_t n, int64_t grain) {
  std::vector<std::atomic<int>> visits(static_cast<size_t>(n));
  parallel_ranges(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++visits[i];
  });
  return {visits.begin(), visits.end()};
}

TEST_CASE("launch: ranges cover everything once for any thread count and grain") {
  for (int count : {1, 2, 3, 64}) {
    const Threads threads(count);
    for (int64_t n : {0, 1, 2, 5, 63, 64, 65, 1000})
      for (int64_t grain : {0, 1, 7, 2000}) CHECK(visits_of(n, grain) == std::vector<int>(static_cast<size_t>(n), 1));
  }
}

TEST_CASE("launch: two threads that both run parallel loops each cover everything once") {
  // Fault: the second caller waits for a team that is busy for ever, or takes over the first one's ranges.
  const Threads threads(4);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 3; ++caller)
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round)
        if (visits_of(100, 1) != std::vector<int>(100, 1)) ++wrong;
    });
  for (std::thread& caller : callers) caller.join();
  CHECK_EQ(wrong, 0);
}

TEST_CASE("launch: short loops one right after another each cover everything once") {
  // Fault: a thread that comes late to one loop takes a part of the next, or runs the part of a loop that is over.
  const Threads threads(4);
  int wrong = 0;
  for (int round = 0; round < 3000; ++round) {
    const int n = 2 + round % 7;
    wrong += visits_of(n, 1) != std::vector<int>(static_cast<size_t>(n), 1);
  }
  CHECK_EQ(wrong, 0);
}

// Two ranges of a loop that wait for each other; only two threads can do that.
struct Meeting {
  std::array<std::thread::id, 2> threads;
  std::atomic<int> arrived{0};
};
struct ComeToMeeting {
  Meeting* meeting;
  int64_t n;
  HD void operator()([[maybe_unused]] int64_t i) const {
#if !ON_GPU
    if (i != 0 && i != n / 2) return;
    meeting->threads[i == 0 ? 0 : 1] = std::this_thread::get_id();
    ++meeting->arrived;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (meeting->arrived < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
#endif
  }
};

TEST_CASE("launch: a long loop runs on two threads, also when nvcc compiles it") {
  // Fault: a build with CUDA passes no flags for threads to the C++ compiler behind nvcc, and runs on one in silence.
  const Threads threads(2);
  const int64_t n = 100'000;
  Meeting meeting;
  each(Device::cpu, n, ComeToMeeting{&meeting, n});
  CHECK_EQ(meeting.arrived, 2);
  CHECK_NE(meeting.threads[0], meeting.threads[1]);
}

TEST_CASE("launch: a parallel loop inside another covers everything once") {
  const Threads threads(4);
  std::vector<std::atomic<int>> visits(40 * 50);
  parallel_ranges(40, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      parallel_ranges(50, 1, [&](int64_t inner_begin, int64_t inner_end) {
        for (int64_t j = inner_begin; j < inner_end; ++j) ++visits[i * 50 + j];
      });
  });
  for (const auto& count : visits) REQUIRE_EQ(count, 1);
}

TEST_CASE("launch: an exception leaves a parallel loop as it was thrown") {
  // Fault: it leaves the parallel region on another thread, and the program is aborted without a message.
  for (int count : {1, 4}) {
    const Threads threads(count);
    for (int64_t thrower : {0, 99}) {
      const auto run = [&] {
        parallel_ranges(100, 1, [&](int64_t begin, int64_t end) {
          if (begin <= thrower && thrower < end) throw Error("no");
        });
      };
      CHECK_THROWS_WITH_AS(run(), "no", Error);
    }
  }
}

TEST_CASE("launch: a thread count that makes no sense is refused, 0 takes the cores") {
  // Fault: more threads than the team can count, and a loop waits for parts that nobody may take.
  const int before = threads();
  const Threads keep(before);
  CHECK_THROWS_AS(set_threads(-1), Error);
  CHECK_THROWS_WITH_AS(set_threads(100'000), doctest::Contains("only 1 to 1024"), Error);
  CHECK_EQ(threads(), before);
  CHECK_GE(set_threads(0), 1);
  CHECK_EQ(set_threads(3), 3);
}

}  // namespace
}  // namespace tapedeck
