// The block engine: lanes that meet come out right in both orders, and lanes that do not meet are named.
#include "engine/emulation/block_engine.h"

#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/check.h"
#include "engine/emulation/kernel_name.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::emulation;

namespace {

// Runs a functor of (block, lane).
template <class F>
void launch(int64_t blocks, int lanes, size_t shared, const F& kernel) {
  run_grid({kernel_name<F>(), blocks, lanes, shared,
            [](const void* f, int64_t block, int lane) { (*static_cast<const F*>(f))(block, lane); }, &kernel});
}

template <class Body>
void in_order(Order order, const Body& body) {
  const Order before = options().order;
  options().order = order;
  CAPTURE((order == Order::forward ? "forward" : "reverse"));
  body();
  options().order = before;
}

template <class Body>
void in_both_orders(const Body& body) {
  in_order(Order::forward, body);
  in_order(Order::reverse, body);
}

// The message with which the launch fails; then the engine has to work as if nothing had been.
template <class F>
std::string failure(int64_t blocks, int lanes, size_t shared, const F& kernel) {
  std::string message = "nothing failed";
  try {
    launch(blocks, lanes, shared, kernel);
  } catch (const Error& e) {
    message = e.what();
  }
  std::vector<float> sums(2);
  launch(2, 64, 64 * sizeof(float), [&](int64_t block, int lane) {
    auto* const s = reinterpret_cast<float*>(shared_memory());
    s[lane] = static_cast<float>(lane);
    barrier(Site::here());
    if (lane == 0)
      for (int i = 0; i < 64; ++i) sums[block] += s[i];
  });
  CHECK_EQ(sums, std::vector<float>{2016, 2016});
  return message;
}

std::string at_line(int line) { return "tests/test_emulation.cpp:" + std::to_string(line); }

// Every text is in the message.
void check_says(const std::string& message, const std::vector<std::string>& texts) {
  CAPTURE(message);
  for (const std::string& wanted : texts) {
    CAPTURE(wanted);
    CHECK_NE(message.find(wanted), std::string::npos);
  }
}

float sum_over_warp(float value) {
  for (int mask = 16; mask > 0; mask /= 2) value += shuffle_xor(value, mask, Site::here());
  return value;
}

}  // namespace

TEST_CASE("a barrier lets no lane pass before all have come") {
  in_both_orders([] {
    std::vector<int> seen(3 * 128);
    int arrived = 0;
    launch(3, 128, 0, [&](int64_t block, int lane) {
      for (int round = 1; round <= 3; ++round) {
        ++arrived;
        barrier(Site::here());
        if (arrived == 128 * (3 * (options().order == Order::forward ? block : 2 - block) + round))
          ++seen[block * 128 + lane];
        barrier(Site::here());
      }
    });
    CHECK_EQ(seen, std::vector<int>(3 * 128, 3));
  });
}

TEST_CASE("lanes and blocks run in the order asked for") {
  for (const Order order : {Order::forward, Order::reverse})
    in_order(order, [&] {
      std::vector<int> ran;
      launch(2, 64, 0, [&](int64_t block, int lane) {
        barrier(Site::here());
        ran.push_back(static_cast<int>(block) * 64 + lane);
      });
      std::vector<int> expected(128);
      for (int i = 0; i < 128; ++i) expected[i] = order == Order::forward ? i : 127 - i;
      CHECK_EQ(ran, expected);
    });
}

TEST_CASE("a lane that does not wait leaves its stack to the next one") {
  in_both_orders([] {
    std::vector<void*> frames;
    launch(2, 64, 0, [&](int64_t, int) { frames.push_back(__builtin_frame_address(0)); });
    CHECK_EQ(frames, std::vector<void*>(128, frames.at(0)));
  });
}

TEST_CASE("shuffles pass 4 and 8 bytes between the lanes of a warp") {
  in_both_orders([] {
    std::vector<float> sums(64);
    std::vector<double> next(64);
    std::vector<int64_t> first(64);
    launch(1, 64, 0, [&](int64_t, int lane) {
      sums[lane] = sum_over_warp(static_cast<float>(lane));
      next[lane] = shuffle(1.0 / (1 + lane), (lane + 1) % 32, Site::here());
      first[lane] = shuffle(int64_t{lane} << 40, 0, Site::here());
    });
    for (int lane = 0; lane < 64; ++lane) {
      const int base = lane / 32 * 32;
      CHECK_EQ(sums[lane], base * 32 + 496);
      CHECK_EQ(next[lane], 1.0 / (1 + base + (lane + 1) % 32));
      CHECK_EQ(first[lane], int64_t{base} << 40);
    }
  });
}

TEST_CASE("a vote gathers one bit a lane") {
  in_both_orders([] {
    std::vector<uint32_t> votes(64);
    launch(1, 64, 0, [&](int64_t, int lane) { votes[lane] = vote(lane % 3 == 0 || lane >= 60, Site::here()); });
    for (int lane = 0; lane < 64; ++lane) CHECK_EQ(votes[lane], lane < 32 ? 0x49249249u : 0xf2492492u);
  });
}

TEST_CASE("a warp barrier waits for the lanes that have not returned, whenever they return") {
  in_both_orders([] {
    int before = 0, after = 0, early = 0;
    launch(1, 32, 0, [&](int64_t, int lane) {
      if (lane % 4 == 1 || lane == 0 || lane == 31) return;  // the last one to run is one that returns
      ++before;
      warp_barrier(Site::here());
      early += before != 22;
      ++after;
    });
    CHECK_EQ(after, 22);
    CHECK_EQ(early, 0);
  });
}

TEST_CASE("shared memory is NaN at the start of every block, and has its size and alignment") {
  in_both_orders([] {
    int fresh = 0;
    bool aligned = true;
    launch(3, 32, 40, [&](int64_t, int lane) {
      auto* const s = reinterpret_cast<float*>(shared_memory());
      aligned &= shared_bytes() == 40 && reinterpret_cast<uintptr_t>(s) % 128 == 0;
      if (lane < 10) fresh += std::isnan(s[lane]);
      if (lane < 10) s[lane] = 1;
    });
    CHECK(aligned);
    CHECK_EQ(fresh, 30);
  });
}

namespace {

// One lane tells the block a number each round; every lane adds them up.
struct Broadcast {
  int writer;
  bool barrier_before_reuse;
  std::vector<int>* sums;

  void operator()(int64_t, int lane) const {
    auto* const told = reinterpret_cast<int*>(shared_memory());
    int sum = 0;
    for (int round = 1; round <= 3; ++round) {
      if (lane == writer) *told = round;
      barrier(Site::here());
      sum += *told;
      if (barrier_before_reuse) barrier(Site::here());
    }
    (*sums)[lane] = sum;
  }
};

bool broadcast_is_right(Order order, int writer, bool barrier_before_reuse) {
  std::vector<int> sums(64);
  in_order(order, [&] { launch(1, 64, sizeof(int), Broadcast{writer, barrier_before_reuse, &sums}); });
  return sums == std::vector<int>(64, 6);
}

}  // namespace

TEST_CASE("a missing barrier before shared memory is written again shows in one of the two orders") {
  // The writer must come first to do harm, so which order shows it depends on the kernel: tests of kernels run both.
  for (const Order order : {Order::forward, Order::reverse})
    for (const int writer : {0, 63}) CHECK(broadcast_is_right(order, writer, true));
  CHECK_FALSE(broadcast_is_right(Order::forward, 0, false));
  CHECK(broadcast_is_right(Order::reverse, 0, false));
  CHECK(broadcast_is_right(Order::forward, 63, false));
  CHECK_FALSE(broadcast_is_right(Order::reverse, 63, false));
}

TEST_CASE("a missing barrier between writing and reading shared memory reads NaN") {
  in_both_orders([] {
    int nan = 0;
    launch(1, 64, 64 * sizeof(float), [&](int64_t, int lane) {
      auto* const s = reinterpret_cast<float*>(shared_memory());
      s[lane] = 1;
      nan += std::isnan(s[63 - lane]);
    });
    CHECK_EQ(nan, 32);
  });
}

namespace {

struct TwoBarriers {
  static constexpr int line = __LINE__ + 3;
  void operator()(int64_t, int lane) const {
    if (lane >= 32)
      barrier(Site::here());
    else
      barrier(Site::here());
  }
};

struct ExitBeforeBarrier {
  static constexpr int line = __LINE__ + 3;
  void operator()(int64_t, int lane) const {
    if (lane >= 48) return;
    barrier(Site::here());
  }
};

struct ShuffleMeetsVote {
  static constexpr int line = __LINE__ + 3;
  void operator()(int64_t, int lane) const {
    if (lane == 40)
      vote(true, Site::here());
    else
      shuffle_xor(1.0F, 1, Site::here());
  }
};

struct ShuffleMeetsBarrier {
  static constexpr int line = __LINE__ + 3;
  void operator()(int64_t, int lane) const {
    if (lane < 4)
      barrier(Site::here());
    else
      shuffle(1.0F, 0, Site::here());
  }
};

struct ShuffleAfterReturn {
  int gone;
  static constexpr int line = __LINE__ + 3;
  void operator()(int64_t, int lane) const {
    if (lane == gone) return;
    shuffle(1.0F, 0, Site::here());
  }
};

template <class T>
struct Throws {
  T what;
  void operator()(int64_t block, int lane) const {
    barrier(Site::here());
    if (block == 1 && lane == 17) throw what;
    barrier(Site::here());
  }
};

}  // namespace

TEST_CASE("lanes at two different barriers are named with both lines") {
  in_both_orders([] {
    const std::string message = failure(2, 64, 0, TwoBarriers{});
    const int line = TwoBarriers::line;
    if (options().order == Order::forward)
      check_says(message, {"TwoBarriers: block 0, lane 32: is at the barrier of " + at_line(line) +
                           ", lane 0 waits at that of " + at_line(line + 2) + ": all lanes of a block must meet"});
    else
      check_says(message, {"TwoBarriers: block 1, lane 31: is at the barrier of " + at_line(line + 2) +
                           ", lane 32 waits at that of " + at_line(line) + ": all lanes of a block must meet"});
  });
}

TEST_CASE("a block cannot go on when lanes return before a barrier that others wait at") {
  in_both_orders([] {
    check_says(failure(1, 64, 0, ExitBeforeBarrier{}),
               {"ExitBeforeBarrier: block 0 cannot go on: 48 (first: lane 0) wait at the barrier of " +
                at_line(ExitBeforeBarrier::line) + ", 16 (first: lane 48) have returned: every lane must"});
  });
  launch(2, 64, 0, [](int64_t block, int) {  // a whole block may return early
    if (block == 0) return;
    barrier(Site::here());
  });
}

TEST_CASE("a shuffle that meets another operation of its warp is named with both lines") {
  const int line = ShuffleMeetsVote::line;
  in_order(Order::forward, [&] {
    check_says(failure(1, 64, 0, ShuffleMeetsVote{}),
               {"ShuffleMeetsVote: block 0, lane 40: is at the vote of " + at_line(line) +
                ", lane 32 waits at the shuffle_xor of " + at_line(line + 2) + ": all lanes of a warp must meet"});
  });
  in_order(Order::reverse, [&] {
    check_says(failure(1, 64, 0, ShuffleMeetsVote{}), {"block 0, lane 40: is at the vote of " + at_line(line) +
                                                       ", lane 41 waits at the shuffle_xor of " + at_line(line + 2)});
  });
  in_both_orders([] {
    const auto one_line = [](int64_t, int lane) {
      lane == 9 ? vote(true, Site::here()) : shuffle(1U, 0, Site::here());
    };
    check_says(failure(1, 32, 0, one_line), {"lane 9", "the vote of ", "the shuffle of ", "all lanes of a warp must"});
  });
}

TEST_CASE("a shuffle whose warp waits at a barrier of the block is named with both lines") {
  in_both_orders([] {
    const int line = ShuffleMeetsBarrier::line;
    check_says(failure(1, 32, 0, ShuffleMeetsBarrier{}),
               {"ShuffleMeetsBarrier: block 0 cannot go on: 4 (first: lane 0) wait at the barrier of " + at_line(line) +
                ", 28 (first: lane 4) wait at the shuffle of " + at_line(line + 2)});
  });
}

TEST_CASE("a shuffle needs all lanes of the warp, returned before or while the others wait") {
  const std::string line = at_line(ShuffleAfterReturn::line);
  const std::string before = ": the shuffle of " + line + " needs all 32 lanes of the warp, but lane 35 has returned";
  const std::string after = "block 0, lane 60: has returned, but lane 32 waits for it at the shuffle of " + line;
  in_order(Order::forward, [&] {
    check_says(failure(1, 64, 0, ShuffleAfterReturn{32}), {"lane 33: the shuffle", "but lane 32 has returned"});
    check_says(failure(1, 64, 0, ShuffleAfterReturn{60}), {"ShuffleAfterReturn: " + after});
  });
  in_order(Order::reverse, [&] {
    check_says(failure(1, 64, 0, ShuffleAfterReturn{63}), {"lane 62: the shuffle", "but lane 63 has returned"});
    check_says(failure(1, 64, 0, ShuffleAfterReturn{35}), {"lane 35: has returned, but lane 36 waits for it"});
  });
  struct VoteOfOneHalf {
    void operator()(int64_t, int lane) const {
      warp_barrier(Site::here());
      if (lane == 3) return;
      warp_barrier(Site::here());
      vote(true, Site::here());
    }
  };
  in_both_orders([&] { check_says(failure(1, 32, 0, VoteOfOneHalf{}), {"the vote of", "but lane 3 has returned"}); });
}

TEST_CASE("a shuffle from a lane that no warp has is refused") {
  in_both_orders([] {
    check_says(failure(1, 32, 0, [](int64_t, int) { shuffle(1.0F, 32, Site::here()); }),
               {"the shuffle of ", "asks for 32, which is not in 0…31"});
    check_says(failure(1, 32, 0, [](int64_t, int) { shuffle_xor(1.0F, -1, Site::here()); }),
               {"the shuffle_xor of ", "asks for -1"});
  });
}

namespace {

// A byte behind the shared memory: AddressSanitizer would end the program at this line, so it is told to look away.
__attribute__((no_sanitize("address"), noinline)) void write_byte(volatile char* at) { *at = 7; }

struct SlabOverrun {
  int offset;
  void operator()(int64_t block, int lane) const {
    if (block == 1 && lane == 5) write_byte(shared_memory() + offset);
  }
};

}  // namespace

TEST_CASE("a write behind the shared memory is named with its block and offset") {
  in_both_orders([] {
    check_says(failure(2, 32, 100, SlabOverrun{100}),
               {"SlabOverrun: block 1 wrote behind its 100 bytes of shared memory, first at byte 100"});
    check_says(failure(2, 32, 100, SlabOverrun{355}), {"first at byte 355"});
    check_says(failure(2, 32, 0, SlabOverrun{0}), {"block 1 wrote behind its 0 bytes of shared memory"});
    check_says(failure(2, 32, 100, SlabOverrun{99}), {"nothing failed"});
  });
}

TEST_CASE("a functor that throws ends the grid with its kernel, block, lane and words") {
  in_both_orders([] {
    check_says(failure(3, 64, 0, Throws<Error>{Error("row 3 is empty")}),
               {"Throws<Error>: block 1, lane 17: row 3 is empty"});
    check_says(failure(3, 64, 0, Throws<int>{3}), {"Throws<int>: block 1, lane 17: threw something that is no"});
  });
}

TEST_CASE("what the waiting lanes of a failed block own is destroyed") {
  in_both_orders([] {
    const auto owned = std::make_shared<int>(1);
    int unwound = 0;
    failure(1, 64, 0, [&](int64_t, int lane) {
      const std::shared_ptr<int> mine = owned;
      const std::vector<int> heap(100, lane);
      if (lane % 32 >= 12) return;
      for (int tries = 0; tries < 2; ++tries) try {  // a kernel that goes on all the same cannot wait again
          barrier(Site::here());
        } catch (...) {
          ++unwound;
        }
    });
    CHECK_EQ(owned.use_count(), 1);
    CHECK_EQ(unwound, 48);
  });
}

TEST_CASE("a launch of a bad shape is refused with the numbers") {
  const auto nothing = [](int64_t, int) {};
  check_says(failure(1, 0, 0, nothing), {"0 lanes a block: take a multiple of 32 up to 1,024"});
  check_says(failure(1, 48, 0, nothing), {"48 lanes a block"});
  check_says(failure(1, 1056, 0, nothing), {"1056 lanes a block"});
  check_says(failure(0, 32, 0, nothing), {"0 blocks: a grid has 1 to 2^31 - 1"});
  check_says(failure(int64_t{1} << 31, 32, 0, nothing), {"2147483648 blocks"});
  check_says(failure(1, 32, 227 * 1024 + 1, nothing), {"232449 bytes of shared memory a block, the limit is 232448"});
  check_says(failure(1, 1024, 227 * 1024, nothing), {"nothing failed"});
  check_says(failure(2, 32, 0, [&](int64_t, int) { launch(1, 32, 0, nothing); }), {"launched from inside a kernel"});
}

TEST_CASE("a barrier outside of a kernel is refused") {
  CHECK_THROWS_WITH_AS(barrier(Site::here()), doctest::Contains("barrier: called outside of a kernel"), Error);
  CHECK_THROWS_WITH_AS(vote(true, Site::here()), doctest::Contains("vote: called outside of a kernel"), Error);
  CHECK_THROWS_AS(shared_memory(), Error);
}

TEST_CASE("kernels are named as they are written") {
  CHECK_EQ(std::string(kernel_name<Throws<float>>()), "Throws<float>");
  CHECK_EQ(std::string(kernel_name<TwoBarriers>()), "TwoBarriers");
  CHECK_EQ(readable_name("const char* tapedeck::emulation::kernel_name() [with F = tapedeck::Map<tapedeck::Relu, 4>]"),
           "Map<Relu, 4>");
  CHECK_EQ(readable_name("const char *tapedeck::emulation::kernel_name() [F = tapedeck::(anonymous namespace)::Sgd]"),
           "Sgd");
}

TEST_CASE("two threads run grids side by side, one of them failing all the time") {
  int wrong = 0, failed = 0;
  auto good = [&wrong] {
    for (int i = 0; i < 50; ++i) {
      std::vector<float> sums(128);
      launch(4, 128, 4 * sizeof(float), [&](int64_t, int lane) {
        auto* const s = reinterpret_cast<float*>(shared_memory());
        const float sum = sum_over_warp(1);
        if (lane % 32 == 0) s[lane / 32] = sum;
        barrier(Site::here());
        sums[lane] = s[0] + s[1] + s[2] + s[3];
      });
      wrong += sums != std::vector<float>(128, 128);
    }
  };
  auto bad = [&failed] {
    for (int i = 0; i < 50; ++i) try {
        launch(1, 64, 0, ExitBeforeBarrier{});
      } catch (const Error&) {
        ++failed;
      }
  };
  std::thread first(good), second(bad);
  first.join();
  second.join();
  CHECK_EQ(wrong, 0);
  CHECK_EQ(failed, 50);
}

TEST_CASE("a grid of 1,000 blocks with 256 lanes and the largest block run to their end") {
  in_both_orders([] {
    std::vector<int> blocks(1000);
    launch(1000, 256, 0, [&](int64_t block, int) {
      ++blocks[block];
      barrier(Site::here());
      ++blocks[block];
    });
    CHECK_EQ(blocks, std::vector<int>(1000, 512));
    int lanes = 0;
    launch(1, 1024, 0, [&](int64_t, int) {
      barrier(Site::here());
      ++lanes;
    });
    CHECK_EQ(lanes, 1024);
  });
}
