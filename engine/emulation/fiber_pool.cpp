#include "engine/emulation/fiber_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "engine/address_sanitizer.h"

namespace tapedeck::emulation {
namespace {

constexpr size_t stack_bytes = (under_address_sanitizer ? 256 : 64) * 1024;  // its red zones make frames larger

size_t guard_bytes() {
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return page;
}

}  // namespace

Fiber::Fiber(size_t index, void (*entry)()) {
  void* const mapped = mmap(nullptr, guard_bytes() + stack_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<char*>(mapped);
  if (mprotect(mapping_, guard_bytes(), PROT_NONE) != 0) {
    munmap(mapping_, guard_bytes() + stack_bytes);
    throw std::bad_alloc();  // the process has too many mappings
  }
  // Tops at different offsets in their pages: else the hot lines of all stacks fall into the same few sets of the
  // cache.
  const size_t stagger = index * 192 % 4096;
  bytes_ = stack_bytes - stagger;
  bottom_ = mapping_ + guard_bytes();
  context_ = prepare_stack(mapping_ + guard_bytes(), bytes_, entry);
}

Fiber::~Fiber() {
  if (!mapping_) return;
  unpoison(mapping_ + guard_bytes(), stack_bytes);
  munmap(mapping_, guard_bytes() + stack_bytes);
}

Fiber* FiberPool::take() {
  if (free_.empty()) {
    all_.push_back(std::make_unique<Fiber>(all_.size(), entry_));
    return all_.back().get();
  }
  Fiber* const fiber = free_.back();
  free_.pop_back();
  return fiber;
}

void FiberPool::switch_to(Fiber& to) {
  Fiber& from = *running_;
  running_ = &to;
  start_switch(&from.fake_stack_, to.bottom_, to.bytes_);
  switch_stack(&from.context_, to.context_);
  finish_switch(from.fake_stack_, nullptr, nullptr);  // here again: somebody has switched back to `from`
}

void FiberPool::entered() {
  const void* bottom = nullptr;
  size_t bytes = 0;
  finish_switch(nullptr, &bottom, &bytes);
  if (all_.size() == 1) main_.bottom_ = bottom, main_.bytes_ = bytes;  // the first fiber is always entered from main
}

}  // namespace tapedeck::emulation
