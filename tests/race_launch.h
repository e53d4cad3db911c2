// What the tests of the race detector share.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/emulation/race_detector.h"
#include "engine/tensor.h"
#include "tests/emulation_launch.h"

namespace tapedeck::emulation {

// In a build that watches no access there is nothing to test:  if (unwatched()) return;
inline bool unwatched() {
  if (!race_build) MESSAGE("skipped: needs the race build (make test-race)");
  return !race_build;
}

// In both orders the launch fails and its message has every text.
template <class F>
void finds(int64_t blocks, int lanes, size_t shared, const F& kernel, const std::vector<std::string>& texts) {
  in_both_orders([&] { check_says(failure(blocks, lanes, shared, kernel), texts); });
}

template <class F>
void finds_nothing(int64_t blocks, int lanes, size_t shared, const F& kernel) {
  finds(blocks, lanes, shared, kernel, {"nothing failed"});
}

// Operations of two streams, of which the test says itself what they wait for. What earlier ones did has happened.
class TwoStreams {
 public:
  // The next operation of stream 0 or 1; after_other: it waits for all that the other one was given.
  void begin(int stream, const char* what, bool after_other = false) {
    const int other = 1 - stream;
    seen_[stream][stream] = ++given[stream];
    if (after_other) seen_[stream][other] = given[other];
    std::vector<uint32_t> clock(first, UINT32_MAX);  // the device's own queues
    clock.insert(clock.end(), {seen_[stream][0], seen_[stream][1]});
    begin_operation(what, first + static_cast<uint32_t>(stream), given[stream], clock);
  }

 private:
  static constexpr uint32_t first = 100;
  static inline uint32_t given[2] = {};
  uint32_t seen_[2][2] = {{given[0], given[1]}, {given[0], given[1]}};
};

// At its end these tensors are as fresh, since the device's own queues know nothing of what TwoStreams did.
class Forget {
 public:
  explicit Forget(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}
  ~Forget() {
    TwoStreams().begin(0, "End");
    for (const Tensor& t : tensors_) device_allocated(t.data.begin(), t.bytes());
  }
  Forget(const Forget&) = delete;
  Forget& operator=(const Forget&) = delete;

 private:
  std::vector<Tensor> tensors_;
};

}  // namespace tapedeck::emulation
