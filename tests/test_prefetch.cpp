// Worker threads that load ahead: the loader's order whoever is faster, errors at their batch's turn, and an end in
// every state.
#include "data/prefetch.h"

#include <atomic>
#include <chrono>
#include <numeric>

#include "engine/check.h"
#undef CHECK  // below, CHECK is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using doctest::Contains;

namespace {

using Rows = std::vector<int32_t>;

void sleep_ms(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

Loader ten_rows(int64_t batch_size = 4) {
  Rows rows(10);
  std::iota(rows.begin(), rows.end(), 0);
  return Loader(rows, batch_size, 3);
}

// What next() gives n times, for a load that keeps the rows and first does `before(number of this load, slot)`.
template <class F>
std::vector<Rows> take(int n, int workers, int64_t slots, const F& before) {
  std::vector<Rows> memory(slots), out;
  std::atomic<int> loads{0};
  Prefetch prefetch(ten_rows(), workers, slots, [&](std::span<const int32_t> rows, int64_t slot) {
    before(loads++, slot);
    memory[slot].assign(rows.begin(), rows.end());
  });
  for (int i = 0; i < n; ++i) out.push_back(memory[prefetch.next()]);
  return out;
}

std::vector<Rows> straight(int n) {
  Loader loader = ten_rows();
  std::vector<Rows> out;
  for (int i = 0; i < n; ++i) {
    const std::span<const int32_t> rows = loader.next();
    out.emplace_back(rows.begin(), rows.end());
  }
  return out;
}

// How many batches of one row arrive until number `failing` throws; what that says is left in `message`.
int batches_until_failure(int workers, int failing, std::string& message) {
  Loader order = ten_rows(1);
  for (int i = 0; i < failing; ++i) order.next();
  const int32_t bad = order.next()[0];
  Prefetch prefetch(ten_rows(1), workers, 2 * workers + 1, [&](std::span<const int32_t> rows, int64_t) {
    sleep_ms(rows[0] % 3);  // so that they overtake one another
    if (rows[0] == bad) throw Error("ten.shard: record 7 is damaged");
  });
  for (int given = 0;; ++given) {
    try {
      prefetch.next();
    } catch (const Error& e) {
      message = e.what();
      CHECK_THROWS_WITH_AS(prefetch.next(), message.c_str(), Error);  // nor does a further call wait for ever
      return given;
    }
  }
}

}  // namespace

// Fault: batches come in the order in which workers finish them, so a run depends on the machine's mood.
TEST_CASE("workers hand batches over in the loader's order, whoever is faster") {
  const std::vector<Rows> expected = straight(30);  // ten epochs of 4, 4, 2
  for (const int workers : {1, 2, 4})
    for (const int64_t slots : {2, 3, 9}) {
      INFO(workers << " workers, " << slots << " slots");
      CHECK(take(30, workers, slots, [](int, int64_t) {}) == expected);
      CHECK(take(30, workers, slots, [](int load, int64_t) { sleep_ms(load * 7 % 3); }) == expected);
    }
}

// Fault: workers wait for one another, and two are no faster than one.
TEST_CASE("two workers load at the same time") {
  std::atomic<int> begun{0};
  std::atomic<bool> alone{false};
  Prefetch prefetch(ten_rows(), 2, 3, [&](std::span<const int32_t>, int64_t) {
    ++begun;
    for (int i = 0; i < 5000 && begun < 2; ++i) sleep_ms(1);  // the other comes at once, or never
    if (begun < 2) alone = true;
  });
  prefetch.next();
  CHECK_FALSE(alone);
}

// Fault: a worker fills the memory that the training step is reading.
TEST_CASE("a worker never loads into the slot in use, nor further ahead than there are slots") {
  constexpr int64_t slots = 3;
  std::atomic<int64_t> in_use{-1}, given{0}, begun{0};
  std::atomic<bool> trespassed{false};
  Prefetch prefetch(ten_rows(), 2, slots, [&](std::span<const int32_t>, int64_t slot) {
    if (slot == in_use || ++begun > given + slots) trespassed = true;
  });
  for (int i = 0; i < 30; ++i) {
    in_use = -1;  // the call gives the slot back
    const int64_t slot = prefetch.next();
    in_use = slot;
    sleep_ms(1);  // a slow step: the workers fill what is free, and wait
    ++given;
  }
  CHECK_FALSE(trespassed);
}

// Fault: an exception in a loading thread ended that thread, or the program, and the training loop waited for ever.
TEST_CASE("what a worker throws comes out of next() at its batch's turn, and at every call after") {
  for (const int workers : {1, 2, 4})
    for (const int failing : {0, 1, 7}) {
      INFO(workers << " workers, batch " << failing);
      std::string message;
      CHECK(batches_until_failure(workers, failing, message) == failing);
      CHECK(message == "ten.shard: record 7 is damaged");
    }
}

TEST_CASE("when several workers fail, the first batch in order is reported") {
  for (int i = 0; i < 20; ++i) {
    Loader loader = ten_rows(1);
    Prefetch prefetch(loader, 4, 9, [](std::span<const int32_t> rows, int64_t) -> void {
      if (rows[0] % 2) sleep_ms(1);
      throw Error("row " + std::to_string(rows[0]));
    });
    const std::string first = "row " + std::to_string(loader.next()[0]);
    CHECK_THROWS_WITH_AS(prefetch.next(), first.c_str(), Error);
  }
}

// Fault: a run that ends early waits for a worker that waits for a free slot.
TEST_CASE("workers end at once in every state: just begun, loading, ahead as far as they may, failed, not yet asked") {
  for (const int workers : {1, 4}) {
    INFO(workers << " workers");
    for (int i = 0; i < 50; ++i) Prefetch(ten_rows(), workers, 3, [](std::span<const int32_t>, int64_t) {});

    std::atomic<int> begun{0}, ended{0};
    {
      Prefetch loading(ten_rows(), workers, 3,
                       [&](std::span<const int32_t>, int64_t) { ++begun, sleep_ms(20), ++ended; });
      while (begun == 0) sleep_ms(1);
    }
    CHECK(begun == ended);  // a load in progress is not cut off: its memory goes away next

    begun = 0;
    {
      Prefetch full(ten_rows(), workers, 3, [&](std::span<const int32_t>, int64_t) { ++begun; });
      while (begun < 3) sleep_ms(1);
      sleep_ms(5);
      CHECK(begun == 3);
    }
    CHECK(begun == 3);
    {
      Prefetch in_use(ten_rows(), workers, 3, [&](std::span<const int32_t>, int64_t) {});
      in_use.next();
    }
    begun = 0;
    {
      Prefetch failed(ten_rows(), workers, 3, [&](std::span<const int32_t>, int64_t) {
        ++begun;
        throw Error("damaged");
      });
      while (begun == 0) sleep_ms(1);
    }
  }
}

TEST_CASE("the seconds of all workers add up") {
  Prefetch prefetch(ten_rows(), 2, 5, [](std::span<const int32_t>, int64_t) { sleep_ms(5); });
  for (int i = 0; i < 10; ++i) prefetch.next();
  CHECK(prefetch.load_seconds() >= 10 * 0.005);  // a sleep never takes less
}

TEST_CASE("no worker, or a single slot, is refused") {
  const auto load = [](std::span<const int32_t>, int64_t) {};
  CHECK_THROWS_WITH_AS(Prefetch(ten_rows(), 0, 2, load), Contains("needs a worker and two slots, got 0 and 2"), Error);
  CHECK_THROWS_WITH_AS(Prefetch(ten_rows(), 1, 1, load), Contains("got 1 and 1"), Error);
}
