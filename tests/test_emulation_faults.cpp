// The block engine's errors: lanes that do not meet, and kernels that do what a GPU would not forgive, are named with
// kernel, block, lane and line; the engine works on after each.
#include <memory>
#include <string>
#include <vector>

#include "tests/emulation_launch.h"

using namespace tapedeck;
using namespace tapedeck::emulation;

namespace {

std::string at_line(int line) { return "tests/test_emulation_faults.cpp:" + std::to_string(line); }

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
      const std::shared_ptr<int> mine = owned;  // NOLINT(performance-unnecessary-copy-initialization): to be destroyed
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
