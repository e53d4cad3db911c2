// The processor's part of a fiber: leave one stack and go on with another.
//
// By hand for x86-64 and aarch64: save the registers that a called function has to keep, swap the stack pointer, load
// them again (2-6 ns). With TAPEDECK_UCONTEXT, or on another processor, swapcontext does it (about 1,200 ns: two system
// calls for the signal mask).
//
// The floating-point modes (x86: mxcsr and the x87 control word, aarch64: fpcr) are left alone. All fibers of a worker
// belong to one OS thread and kernels do not change its rounding, so that there is nothing to swap, and every lane
// computes in the mode of whoever launched the grid.
#pragma once
#include <cstddef>

#if !defined(__x86_64__) && !defined(__aarch64__) && !defined(TAPEDECK_UCONTEXT)
#define TAPEDECK_UCONTEXT
#endif

namespace tapedeck::emulation {

// Where a stack that is not running goes on: its stack pointer, or its ucontext_t.
using Context = void*;

// A new stack of `bytes` at `bottom` (both multiples of 16): the first switch to it calls entry(), which must not
// return.
Context prepare_stack(char* bottom, size_t bytes, void (*entry)());

// Goes on at `to`; returns when somebody switches to what was put into *here.
void switch_stack(Context* here, Context to);

}  // namespace tapedeck::emulation
