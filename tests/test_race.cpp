// The race detector: faults planted in kernels are found and named, in both orders of lanes, and their mended
// counterparts are not. (Memory that is never written or out of bounds: test_race_memory.cpp.)
#include <atomic>
#include <string>

#include "tests/race_launch.h"

using namespace tapedeck;
using namespace tapedeck::emulation;

namespace {

std::string at_line(int line) { return "tests/test_race.cpp:" + std::to_string(line); }
float* shared_floats() { return reinterpret_cast<float*>(shared_memory()); }
Tensor zeros(int64_t count) { return Tensor::full({count}, DType::f32, Device::emulated, 0); }

enum class Sync { none, warp, block };

void sync(Sync how) {
  if (how == Sync::warp) warp_barrier(Site::here());
  if (how == Sync::block) barrier(Site::here());
}

// Each lane writes its place and reads that of the lane `distance` further on.
struct WriteThenRead {
  Sync between;
  int lanes, distance;
  float* out;
  static constexpr int write = __LINE__ + 5, read = write + 2;
  void operator()(int64_t, int lane) const {
    float* const s = shared_floats();
    s[lane] = 0;
    barrier(Site::here());
    s[lane] = static_cast<float>(lane);
    sync(between);
    out[lane] = s[(lane + distance) % lanes];
  }
};

// Each lane reads its neighbour's place, then writes its own.
struct ReadThenWrite {
  Sync between;
  int lanes, distance;
  float* out;
  static constexpr int read = __LINE__ + 5, write = read + 2;
  void operator()(int64_t, int lane) const {
    float* const s = shared_floats();
    s[lane] = static_cast<float>(lane);
    barrier(Site::here());
    out[lane] = s[(lane + distance) % lanes];
    sync(between);
    s[lane] = 1;
  }
};

template <class Kernel>
void check_exchange() {
  const Tensor out = zeros(128);
  const auto kernel = [&](Sync between, int lanes, int distance) {
    return Kernel{between, lanes, distance, out.ptr<float>()};
  };
  const std::string write = at_line(Kernel::write), read = at_line(Kernel::read);
  for (const Sync too_little : {Sync::none, Sync::warp})
    finds(1, 128, 512, kernel(too_little, 128, 64),
          {"block 0, lane ", "race: ", "of the 512 bytes of shared memory", write, read, "lanes need a sync()"});
  finds(1, 32, 128, kernel(Sync::none, 32, 1), {"race: ", write, read, "lanes of a warp need a sync()"});
  finds_nothing(1, 128, 512, kernel(Sync::block, 128, 64));
  finds_nothing(1, 32, 128, kernel(Sync::warp, 32, 1));
}

}  // namespace

TEST_CASE("race: a missing barrier between writing and reading") {
  if (unwatched()) return;
  check_exchange<WriteThenRead>();
}

TEST_CASE("race: a missing barrier before memory is written again") {
  if (unwatched()) return;
  check_exchange<ReadThenWrite>();
}

TEST_CASE("race: both lanes and both lines are named") {
  if (unwatched()) return;
  const Tensor out = zeros(64);
  in_order(Order::forward, [&] {
    check_says(failure(1, 64, 256, WriteThenRead{Sync::none, 64, 32, out.ptr<float>()}),
               {"WriteThenRead: block 0, lane 32: race: writes byte 128 of the 256 bytes of shared memory at " +
                at_line(WriteThenRead::write) + ", and block 0, lane 0 reads it at " + at_line(WriteThenRead::read)});
  });
}
