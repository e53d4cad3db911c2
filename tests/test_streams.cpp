// The emulated device's queues: what runs when, what the host may get wrong, capture and replay.
#include "engine/emulation/streams.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "engine/emulation/emulated_device.h"
#include "engine/emulation/race_detector.h"
#include "engine/launch.h"
#include "engine/pinned.h"
#include "engine/tensor.h"
#include "tests/message_of.h"
#include "tests/settings.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

namespace tapedeck {
namespace {

using emulation::Mode;
using emulation::Order;
using emulation::UseMode;
using test::message_of;

Backend& device() { return backend(Device::emulated); }

struct Pinned {  // n floats
  explicit Pinned(size_t n) : bytes(n * sizeof(float)), p(static_cast<float*>(device().pin(bytes))) {}
  ~Pinned() { device().unpin(p); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  size_t bytes;
  float* p;
};

struct AddTo {  // y += x
  const float* x;
  float* y;
  HD void operator()(int64_t i) const { y[i] += x[i]; }
};
void add(const Tensor& y, const Tensor& x) { each(Device::emulated, y.count(), AddTo{x.ptr<float>(), y.ptr<float>()}); }
Tensor numbers(float value) { return Tensor::full({8}, DType::f32, Device::emulated, static_cast<double>(value)); }

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST_CASE("streams: deferred work has run when a value is read, and not before") {
  const UseMode lazy(Mode::lazy);
  const Tensor x = numbers(1);
  device().sync();
  add(x, numbers(2));
  float now = 0;
  std::memcpy(&now, x.ptr<float>(), sizeof now);  // a look behind the device's back
  CHECK_EQ(now, 1);
  CHECK_EQ(x.doubles()[7], 3);
}

TEST_CASE("streams: memory that the host frees stays as it is for the work that waits") {
  const UseMode lazy(Mode::lazy);
  const Tensor y = numbers(0);
  for (int i = 0; i < 5; ++i) add(y, numbers(1));  // each takes the memory that the last one gave back
  CHECK_EQ(y.doubles()[0], 5);
}

TEST_CASE("streams: a copy to the host shows as NaN until somebody waits for it") {
  // Fault: results are read without a wait behind the copy; a GPU usually is fast enough, and the day it is not the
  // numbers are those of the step before.
  const UseMode lazy(Mode::lazy);
  const Tensor x = numbers(7);
  Pinned to(8);
  to.p[0] = 7;  // of the step before
  device().copy_later(Queue::compute, to.p, x.ptr<float>(), to.bytes);
  CHECK(std::isnan(to.p[0]));
  const auto event = device().event();
  device().record(*event, Queue::compute);
  device().wait(*event);
  CHECK_EQ(to.p[0], 7);
}

TEST_CASE("streams: pinned memory that is written or freed before its copy has run is an error") {
  // Fault: the loader fills a staging buffer again while the copy of the last batch still reads it.
  const UseMode lazy(Mode::lazy);
  const Tensor x = numbers(0);
  Pinned from(8);
  for (size_t i = 0; i < 8; ++i) from.p[i] = 1;
  device().copy_later(Queue::transfer, x.ptr<float>(), from.p, from.bytes);
  from.p[3] = 2;
  CHECK(has(message_of([] { device().sync(); }), "copy from the host: its pinned source was written to before it ran"));
  {
    Pinned gone(8);
    device().copy_later(Queue::transfer, x.ptr<float>(), gone.p, gone.bytes);
  }
  CHECK(has(message_of([] { device().sync(); }), "copy from the host: its pinned source was freed before it ran"));
  std::vector<float> pageable(8);
  CHECK(has(message_of([&] { device().copy_later(Queue::transfer, x.ptr<float>(), pageable.data(), 32); }),
            "not pinned"));
  CHECK_EQ(message_of([] { device().sync(); }), "nothing was thrown");  // what had failed is forgotten
}

TEST_CASE("streams: what fails where nobody can hear of it is thrown by whoever waits next") {
  // Fault: a destructor waits and swallows what it is told, and the run goes on with numbers that were never computed.
  const UseMode lazy(Mode::lazy);
  const Tensor x = numbers(0);
  const char* const what = "its pinned source was written to before it ran";
  const auto fail_unheard = [&] {
    PinnedBuffer from(Device::emulated, 8 * sizeof(float));
    std::memset(from.begin(), 0, 8 * sizeof(float));
    device().copy_later(Queue::transfer, x.ptr<float>(), from.begin(), 8 * sizeof(float));
    static_cast<float*>(from.begin())[3] = 2;
  };
  const auto event = device().event();
  for (const auto& wait : std::vector<std::function<void()>>{[] { device().sync(); }, [&] { (void)x.doubles(); },
                                                             [&] { device().wait(*event); }}) {
    fail_unheard();
    device().record(*event, Queue::compute);
    add(x, x);
    CHECK(has(message_of(wait), what));
    CHECK_EQ(message_of(wait), "nothing was thrown");
  }
}

// y = the sum of what a loader copies beside: one batch, or, without the event, perhaps none of it.
double batch_through_queues(bool with_event, Order order) {
  const UseMode lazy(Mode::lazy);
  const test::LaneOrder in_order(order);
  const Tensor x = numbers(0), y = numbers(0);
  Pinned from(8);
  for (size_t i = 0; i < 8; ++i) from.p[i] = 5;
  device().sync();
  device().copy_later(Queue::transfer, x.ptr<float>(), from.p, from.bytes);
  const auto copied = device().event();
  device().record(*copied, Queue::transfer);
  if (with_event) device().wait(Queue::compute, *copied);
  add(y, x);
  const double result = y.doubles()[0];
  device().sync();
  return result;
}

TEST_CASE("streams: without an event a kernel does not see what the other queue copies") {
  CHECK_EQ(batch_through_queues(true, Order::forward), 5);
  CHECK_EQ(batch_through_queues(true, Order::reverse), 5);
  if (emulation::race_build)
    CHECK(has(message_of([] { batch_through_queues(false, Order::reverse); }), "no event orders the two operations"));
  else
    CHECK_EQ(batch_through_queues(false, Order::reverse), 0);
}

TEST_CASE("streams: a captured step runs when it is replayed, each time") {
  for (const Mode mode : {Mode::eager, Mode::lazy}) {
    const UseMode use(mode);
    const Tensor x = numbers(1), y = numbers(0);
    const auto graph = device().capture([&] {
      const Tensor between = numbers(10);  // memory of the graph's own
      add(between, x);
      add(y, between);
    });
    CHECK_EQ(y.doubles()[0], 0);
    for (int i = 1; i <= 3; ++i) {
      graph->replay();
      CHECK_EQ(y.doubles()[0], 11 * i);
    }
    fill(x, 2);  // device memory may change between replays
    graph->replay();
    CHECK_EQ(y.doubles()[0], 45);
    CHECK(graph->nodes() >= 3);
  }
}

TEST_CASE("streams: a value read or a wait while capturing is an error that says what to do") {
  const Tensor x = numbers(1);
  const auto captured = [&](const std::function<void()>& f) { return message_of([&] { device().capture(f); }); };
  const char* what_to_do = "a step is being captured; return the tensor from the step and read it after replay";
  CHECK(has(captured([&] { (void)x.doubles(); }), what_to_do));
  CHECK(has(captured([&] { (void)Tensor::from(std::vector<float>(8), {8}, Device::emulated); }), what_to_do));
  CHECK(has(captured([] { device().sync(); }), what_to_do));
  CHECK(has(captured([] { device().capture([] {}); }), "captured already"));
  CHECK_EQ(x.doubles()[0], 1);  // and it is over
}

TEST_CASE("streams: a fork inside of a capture is replayed in an order that its events allow, and must be joined") {
  for (const Order order : {Order::forward, Order::reverse}) {
    const test::LaneOrder in_order(order);
    const Tensor x = numbers(0), y = numbers(0);
    Pinned from(8);
    const auto forked = device().event(), joined = device().event();
    const auto step = [&](bool join) {
      add(x, x);
      device().record(*forked, Queue::compute);
      device().wait(Queue::transfer, *forked);
      device().copy_later(Queue::transfer, x.ptr<float>(), from.p, from.bytes);
      device().record(*joined, Queue::transfer);
      if (join) device().wait(Queue::compute, *joined);
      add(y, x);
    };
    const auto graph = device().capture([&] { step(true); });
    for (int i = 1; i <= 3; ++i) {
      for (size_t k = 0; k < 8; ++k) from.p[k] = static_cast<float>(i);
      graph->replay();
    }
    CHECK_EQ(y.doubles()[0], 6);
    CHECK(has(message_of([&] { device().capture([&] { step(false); }); }), "the transfer queue is not joined"));
  }
}

struct Scale {
  float* x;
  float factor;
  HD void operator()(int64_t i) const { x[i] *= factor; }
};

TEST_CASE("streams: a number of the host that is baked into a capture is found by capturing twice") {
  // Fault: the learning rate of the captured step is used for ever, since it was a kernel's argument.
  if (!emulation::arguments_compare) {
    std::puts("skipped: this compiler cannot clear the bytes between a kernel's arguments (g++ can)");
    return;
  }
  const Tensor x = numbers(1);
  const auto capture = [&](float rate) {
    auto graph = device().capture([&] {
      add(x, x);
      each(Device::emulated, x.count(), Scale{x.ptr<float>(), rate});
    });
    return std::unique_ptr<emulation::StreamGraph>(dynamic_cast<emulation::StreamGraph*>(graph.release()));
  };
  CHECK_EQ(capture(0.5f)->difference(*capture(0.5f)), "");
  CHECK_EQ(capture(0.5f)->difference(*capture(0.25f)), "node 1, Scale, is given other arguments");
}

TEST_CASE("streams: two captured events give the device time between them") {
  const auto from = device().event(), to = device().event();
  device().record(*from, Queue::compute);
  add(numbers(1), numbers(1));
  device().record(*to, Queue::compute);
  device().wait(*to);
  CHECK(device().seconds(*from, *to) > 0);
}

}  // namespace
}  // namespace tapedeck
