// The race detector on what orders blocks and operations: grids, streams and events; and atomics.
#include <atomic>
#include <functional>
#include <string>

#include "engine/backend.h"
#include "engine/gemm_devices.h"
#include "engine/launch.h"
#include "engine/pinned.h"
#include "tests/message_of.h"
#include "tests/race_launch.h"

namespace tapedeck {
using namespace tapedeck::emulation;
using test::message_of;

namespace {

Tensor zeros(int64_t count) { return Tensor::full({count}, DType::f32, Device::emulated, 0); }

struct AddOne {
  float* sum;
  void operator()(int64_t, int lane) const {
    if (lane == 0) *sum += 1;
  }
};

struct CountUp {
  int32_t* count;
  bool plain_too;
  void operator()(int64_t block, int) const {
    if (plain_too && block == 1)
      *count = 0;
    else
      std::atomic_ref(*count).fetch_add(1);
  }
};

struct WriteAll {
  float* to;
  void operator()(int64_t, int lane) const { to[lane] = 1; }
};

struct ReadAll {
  const float* from;
  float* to;
  void operator()(int64_t, int lane) const { to[lane] = from[lane]; }
};

struct Same {
  template <class A>
  HD A operator()(A a) const {
    return a;
  }
};

}  // namespace

TEST_CASE("race: a plain add from two blocks") {
  if (unwatched()) return;
  const Tensor sum = zeros(1);
  finds(2, 32, 0, AddOne{sum.ptr<float>()},
        {"AddOne: block ",
         "race: reads byte 0 of a buffer of 4 bytes at tests/test_race_order.cpp:", "blocks run in any order"});
  finds_nothing(1, 32, 0, AddOne{sum.ptr<float>()});  // and grids come one after another
  CHECK_GE(sum.item(), 2);
}

TEST_CASE("race: atomic adds are none, except with a plain access") {
  if (unwatched()) return;
  const Tensor count = Tensor::full({1}, DType::i32, Device::emulated, 0);
  finds_nothing(2, 64, 0, CountUp{count.ptr<int32_t>(), false});
  CHECK_EQ(count.item(), 2 * 2 * 64);
  finds(3, 64, 0, CountUp{count.ptr<int32_t>(), true}, {"race: writes byte 0 of a buffer of 4 bytes"});
}

TEST_CASE("race: reads of other warps and blocks are not forgotten for later ones") {
  if (unwatched()) return;
  const Tensor x = zeros(1), out = zeros(256);
  // Warp 0 reads, all lanes of warp 1 read after it, and one of these writes: only warp 0 is in the way.
  finds(1, 64, 0,
        [from = x.ptr<float>(), to = out.ptr<float>()](int64_t, int lane) {
          if (lane < 32) to[lane] = *from;
          if (lane >= 32) {
            to[lane] = *from;
            warp_barrier(Site::here());
            to[lane] = *from;
            warp_barrier(Site::here());
            if (lane == 40) *from = 1;
          }
        },
        {"race: ", "the lanes need a sync()"});
}

namespace {

// The first operation on stream 0, the second on stream 1, each a kernel, a copy or a product.
std::string two_streams(bool event, const std::function<void()>& first, const std::function<void()>& second) {
  TwoStreams streams;
  streams.begin(0, "Earlier");
  first();
  streams.begin(1, "Later", event);
  return message_of(second);
}

}  // namespace

TEST_CASE("race: two streams that no event orders") {
  if (unwatched()) return;
  const Tensor x = zeros(64), y = zeros(64), z = zeros(64);
  const Forget at_the_end({x, y, z});
  const auto read = [&] { launch(1, 64, 0, ReadAll{x.ptr<float>(), y.ptr<float>()}); };
  const auto read_too = [&] { launch(1, 64, 0, ReadAll{x.ptr<float>(), z.ptr<float>()}); };
  const auto write = [&] { launch(1, 64, 0, WriteAll{x.ptr<float>()}); };
  const float host = 0;  // copies look at the device's side alone
  const auto copy_from = [&] { device_copy(&host, x.ptr<float>(), 256); };
  const auto copy_to = [&] { device_copy(x.ptr<float>(), &host, 256); };
  const auto product = [&] {
    gemm_emulated({.m = 8, .n = 8, .k = 8, .a = x.ptr<float>(), .b = x.ptr<float>(), .c = z.ptr<float>()});
  };

  check_says(two_streams(false, write, read),
             {"ReadAll: block 0, lane 0: race: reads byte 0 of a buffer of 256 bytes at tests/test_race_order.cpp:",
              "of stream 100), block 0, lane 0 writes it at tests/test_race_order.cpp:",
              "no event orders the two operations"});
  check_says(two_streams(false, read, write), {"race: writes byte 0", "lane 0 reads it", "no event orders"});
  check_says(two_streams(false, write, copy_from),
             {"Later (operation ", " of stream 101): race: reads byte 0", "lane 0 writes it", "no event orders"});
  check_says(two_streams(false, copy_to, read),
             {"race: reads byte 0", "Earlier (operation ", " of stream 100) writes it"});
  check_says(two_streams(false, write, product),
             {"Later (operation ", " of stream 101): race: reads", "no event orders"});

  CHECK_EQ(two_streams(true, write, read), "nothing was thrown");
  CHECK_EQ(two_streams(true, read, write), "nothing was thrown");
  CHECK_EQ(two_streams(true, write, copy_from), "nothing was thrown");
  CHECK_EQ(two_streams(true, copy_to, read), "nothing was thrown");
  CHECK_EQ(two_streams(true, write, product), "nothing was thrown");
  CHECK_EQ(two_streams(false, read, read_too), "nothing was thrown");  // both only read x
}

TEST_CASE("race: a kernel that does not wait for the copy on the other queue") {
  if (unwatched()) return;
  // Fault: the step reads a batch that the loader's copy has not brought yet, and a GPU is usually fast enough.
  const Tensor x = zeros(64), y = zeros(64);
  const PinnedBuffer batch(Device::emulated, 256);
  Backend& device = backend(Device::emulated);
  const auto step = [&](bool waits) {
    const auto copied = device.event();
    device.copy_later(Queue::transfer, x.ptr<float>(), batch.begin(), 256);
    device.record(*copied, Queue::transfer);
    if (waits) device.wait(Queue::compute, *copied);
    map(Device::emulated, 64, Into<float>{y.ptr<float>()}, Same{}, x.ptr<float>());
    device.sync();
  };
  for (const Mode mode : {Mode::eager, Mode::lazy}) {
    const UseMode use(mode);
    CHECK_EQ(message_of([&] { step(true); }), "nothing was thrown");
    check_says(message_of([&] { step(false); }),
               {"MapPacks<", "block 0, lane 0: race: reads byte 0 of a buffer of 256 bytes at engine/pack.h:",
                "and copy from the host (operation ", " of stream 1) writes it: no event orders the two"});
  }
}

TEST_CASE("race: memory that is given out again while the other queue may still copy from it") {
  if (unwatched()) return;
  // Fault: a tensor is freed as soon as its copy to the host is asked for, and the next one overwrites it.
  const PinnedBuffer result(Device::emulated, 256);
  Backend& device = backend(Device::emulated);
  const auto reuse = [&](bool waits) {
    const void* first = nullptr;
    const auto made = device.event(), copied = device.event();
    {
      const Tensor x = zeros(64);
      first = x.data.begin();
      device.record(*made, Queue::compute);
      device.wait(Queue::transfer, *made);
      device.copy_later(Queue::transfer, result.begin(), first, 256);
      device.record(*copied, Queue::transfer);
    }
    if (waits) device.wait(Queue::compute, *copied);
    const Tensor y = zeros(64);
    CHECK_EQ(y.data.begin(), first);
  };
  CHECK_EQ(message_of([&] { reuse(true); }), "nothing was thrown");
  check_says(message_of([&] { reuse(false); }),
             {"allocate (operation ", "race: byte 0 of a buffer of 256 bytes, which has been freed, is given out again",
              "and copy to the host (operation ", " of stream 1) reads it: no event orders the two"});
  CHECK_EQ(message_of([&] { reuse(true); }), "nothing was thrown");
}

}  // namespace tapedeck
