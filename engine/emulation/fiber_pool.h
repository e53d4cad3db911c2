// Fibers: stacks that take turns on one OS thread. A pool belongs to one thread and keeps its fibers for later blocks.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "engine/emulation/context_switch.h"

namespace tapedeck::emulation {

// A stack of its own from mmap with a guard page below, so that a kernel which overflows it faults at once.
class Fiber {
 public:
  // Fiber number `index` of its pool; entry must not return.
  Fiber(size_t index, void (*entry)());
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

 private:
  friend class FiberPool;
  Fiber() = default;  // the thread's own stack

  Context context_ = nullptr;
  char* mapping_ = nullptr;
  // What AddressSanitizer must hear at each switch: the bounds of the stack, and its record of locals moved to the
  // heap.
  const void* bottom_ = nullptr;
  size_t bytes_ = 0;
  void* fake_stack_ = nullptr;
};

class FiberPool {
 public:
  explicit FiberPool(void (*entry)()) : entry_(entry) {}

  Fiber* take();
  void give_back(Fiber* fiber) { free_.push_back(fiber); }

  void switch_to(Fiber& to);
  void switch_to_main() { switch_to(main_); }
  void entered();  // entry's first act

 private:
  void (*entry_)();
  Fiber main_;
  Fiber* running_ = &main_;
  std::vector<std::unique_ptr<Fiber>> all_;
  std::vector<Fiber*> free_;
};

}  // namespace tapedeck::emulation
