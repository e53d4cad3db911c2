// Process-wide settings that a test changes for its own scope only.
#pragma once
#include "engine/device.h"
#include "engine/emulation/block_engine.h"

namespace tapedeck::test {

class Threads {  // CPU loops and gemm use this many threads
 public:
  explicit Threads(int count) : before_(threads()) { set_threads(count); }
  ~Threads() { set_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

class LaneOrder {  // the emulated device runs lanes and blocks in this order
 public:
  explicit LaneOrder(emulation::Order order) : before_(emulation::options().order) {
    emulation::options().order = order;
  }
  ~LaneOrder() { emulation::options().order = before_; }
  LaneOrder(const LaneOrder&) = delete;
  LaneOrder& operator=(const LaneOrder&) = delete;

 private:
  emulation::Order before_;
};

}  // namespace tapedeck::test
