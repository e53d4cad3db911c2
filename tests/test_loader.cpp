// The order of examples: every row once an epoch, and the same order for the same (seed, epoch).
#include "data/loader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "engine/check.h"
#undef CHECK  // below, CHECK is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using doctest::Contains;

namespace {

using Rows = std::vector<int32_t>;

Rows count_from(int32_t first, int n) {
  Rows rows(n);
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}
Rows first(const Rows& rows, int n) { return {rows.begin(), rows.begin() + n}; }
Rows sorted(Rows rows) { return std::sort(rows.begin(), rows.end()), rows; }

Rows take_epoch(Loader& loader, size_t rows_of_epoch) {
  Rows rows;
  while (rows.size() < rows_of_epoch) {
    const auto batch = loader.next();
    rows.insert(rows.end(), batch.begin(), batch.end());
  }
  return rows;
}

}  // namespace

// Fault: the order is changed by anything else than seed and epoch, so a run cannot be repeated or taken up again.
TEST_CASE("loader: the order is a function of seed and epoch") {
  const Rows rows = count_from(0, 10);
  CHECK(epoch_order(rows, 7, 3) == epoch_order(rows, 7, 3));
  CHECK(epoch_order(rows, 7, 0) ==
        Rows{3, 4, 6, 5, 0, 7, 2, 9, 8, 1});  // must never change: runs of older versions would not repeat

  Loader loader(rows, 4, 7);
  for (int64_t epoch = 0; epoch < 5; ++epoch) CHECK(take_epoch(loader, 10) == epoch_order(rows, 7, epoch));
}

// Fault: a seed that does not reach the shuffle makes the runs of a repeat alike.
TEST_CASE("loader: another seed or epoch gives another order of the same rows") {
  const Rows rows = count_from(100, 50);
  std::vector<Rows> orders;
  for (const uint64_t seed : {uint64_t(0), uint64_t(1), uint64_t(42), uint64_t(1) << 32, uint64_t(1) << 63})
    for (const int64_t epoch : {0, 1, 2, 1000}) orders.push_back(epoch_order(rows, seed, epoch));
  for (const Rows& order : orders) CHECK(sorted(order) == rows);
  std::sort(orders.begin(), orders.end());
  CHECK(std::adjacent_find(orders.begin(), orders.end()) == orders.end());
}

TEST_CASE("loader: each row comes to each place equally often") {
  constexpr int n = 6, epochs = 6000;
  int counts[n][n] = {};
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    const Rows order = epoch_order(count_from(0, n), 5, epoch);
    for (int place = 0; place < n; ++place) ++counts[place][order[place]];
  }
  // Pearson's statistic has (n-1)² = 25 degrees of freedom; 60 is beyond its 0.9999 quantile, 57.9.
  double statistic = 0;
  const double expected = double(epochs) / n;
  for (const auto& place : counts)
    for (const int count : place) statistic += (count - expected) * (count - expected) / expected;
  CHECK(statistic < 60);
}

TEST_CASE("loader: 10 rows in batches of 4 come as 4, 4, 2, epoch after epoch, each row once") {
  const Rows rows = count_from(20, 10);
  Loader loader(rows, 4, 1);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    Rows seen;
    for (int64_t index = 0; index < 3; ++index) {
      const auto batch = loader.next();
      CHECK(batch.size() == (index == 2 ? 2 : 4));
      seen.insert(seen.end(), batch.begin(), batch.end());
    }
    CHECK(sorted(seen) == rows);
  }
}

// Fault: a step with what an epoch has left is one of another batch size.
TEST_CASE("loader: of an epoch of 10 rows that gives 8, batches of 4 come as 4, 4, and other rows are left out each time") {
  std::vector<int32_t> rows(10);
  std::iota(rows.begin(), rows.end(), 100);
  Loader loader(rows, 4, 7, {}, 8);
  std::set<int32_t> seen;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    std::set<int32_t> of_epoch;
    for (int batch = 0; batch < 2; ++batch) {
      const auto next = loader.next();
      CHECK(next.size() == 4);
      CHECK(loader.epoch() == epoch);
      of_epoch.insert(next.begin(), next.end());
    }
    CHECK(of_epoch.size() == 8);
    seen.insert(of_epoch.begin(), of_epoch.end());
  }
  CHECK(seen.size() == 10);
  Loader later(rows, 4, 7, {1, 4}, 8), straight(rows, 4, 7, {}, 8);
  for (int i = 0; i < 3; ++i) straight.next();
  const auto expected = straight.next();
  const std::vector<int32_t> wanted(expected.begin(), expected.end());
  const auto got = later.next();
  CHECK(std::vector<int32_t>(got.begin(), got.end()) == wanted);
}

TEST_CASE("loader: batches that fit exactly, one batch an epoch, one row a batch") {
  for (const int batch_size : {1, 2, 4, 8}) {
    const Rows rows = count_from(0, 8);
    Loader loader(rows, batch_size, 3);
    CHECK(sorted(take_epoch(loader, 8)) == rows);
    const auto next = loader.next();
    CHECK(Rows(next.begin(), next.end()) == first(epoch_order(rows, 3, 1), batch_size));
  }
}

// Fault: with a batch larger than the data every epoch had no step, and its loss was reported as 0.
TEST_CASE("loader: a batch larger than the data is refused with both numbers") {
  const Rows rows = count_from(0, 10);
  CHECK_THROWS_WITH_AS(Loader(rows, 32, 1), Contains("batch 32: larger than the training split of 10 rows"),
                       UsageError);
  CHECK_THROWS_AS(Loader(rows, 11, 1), UsageError);
  CHECK_THROWS_AS(Loader(rows, std::numeric_limits<int64_t>::max(), 1), UsageError);
  CHECK_THROWS_AS(Loader({}, 1, 1), UsageError);
  for (const int64_t size : {int64_t(0), int64_t(-4)}) {
    const std::string message = "batch " + std::to_string(size) + ": must be at least 1";
    CHECK_THROWS_WITH_AS(Loader(rows, size, 1), message.c_str(), UsageError);
    CHECK_THROWS_WITH_AS(in_order(rows, size), message.c_str(), UsageError);
  }
}

// Fault: a run that goes on begins its epoch again, so that some examples come twice and others never.
TEST_CASE("loader: from any position on come the rows that a straight run has left, also in batches of another size") {
  const Rows rows = count_from(0, 10);
  Loader straight(rows, 4, 9);
  Rows all;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const Rows order = take_epoch(straight, 10);
    all.insert(all.end(), order.begin(), order.end());
  }
  for (const int64_t batch_size : {1, 3, 4, 10})
    for (int64_t given = 0; given < 20; ++given) {
      INFO(given << " examples given, batches of " << batch_size);
      Loader loader(rows, batch_size, 9, {given / 10, given % 10});
      Rows tail;
      while (std::ssize(tail) < 10) {
        const auto batch = loader.next();
        CHECK((given + std::ssize(tail)) % 10 + std::ssize(batch) <= 10);  // no batch of two epochs
        tail.insert(tail.end(), batch.begin(), batch.end());
      }
      CHECK(std::equal(tail.begin(), tail.end(), all.begin() + given));
    }
  Loader complete(rows, 4, 9, {2, 10});  // such an epoch is over
  const auto next = complete.next();
  CHECK(Rows(next.begin(), next.end()) == first(epoch_order(rows, 9, 3), 4));
  for (const Position from : {Position{-1, 0}, Position{0, -1}, Position{0, 11}})
    CHECK_THROWS_WITH_AS(Loader(rows, 4, 9, from), Contains("of a training split of 10 rows"), Error);
}

TEST_CASE("loader: evaluation sees every row once, in order, also in one batch larger than the data") {
  const Rows rows = {5, 3, 9, 1, 7};
  const auto batches = in_order(rows, 2);
  REQUIRE(batches.size() == 3);
  Rows seen;
  for (const auto batch : batches) seen.insert(seen.end(), batch.begin(), batch.end());
  CHECK(seen == rows);
  CHECK(batches[2].size() == 1);
  REQUIRE(in_order(rows, std::numeric_limits<int64_t>::max()).size() == 1);
  CHECK(in_order(rows, 100)[0].size() == 5);
  CHECK(in_order({}, 4).empty());
}
