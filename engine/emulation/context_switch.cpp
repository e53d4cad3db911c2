#include "engine/emulation/context_switch.h"

#if defined(TAPEDECK_UCONTEXT)
#include <ucontext.h>
#endif

// switch_registers(void** here, void* to). It ends in `ret`, not in a jump: else the processor's return predictor gets
// out of step with the calls, and a barrier costs twice as much.
#if defined(TAPEDECK_UCONTEXT)
#elif defined(__x86_64__)
asm(R"(
.pushsection .text
.p2align 4
.globl tapedeck_switch_registers
.type tapedeck_switch_registers, @function
tapedeck_switch_registers:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tapedeck_switch_registers, . - tapedeck_switch_registers
.popsection
)");
#elif defined(__aarch64__)
asm(R"(
.pushsection .text
.p2align 4
.globl tapedeck_switch_registers
.type tapedeck_switch_registers, %function
tapedeck_switch_registers:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size tapedeck_switch_registers, . - tapedeck_switch_registers
.popsection
)");
#endif

#if !defined(TAPEDECK_UCONTEXT)
extern "C" void tapedeck_switch_registers(void** here, void* to);
#endif

namespace tapedeck::emulation {

#if defined(TAPEDECK_UCONTEXT)

// The ucontext_t of a new stack lives at its bottom, that of a left stack in the frame that left it.
Context prepare_stack(char* bottom, size_t bytes, void (*entry)()) {
  auto* const context = reinterpret_cast<ucontext_t*>(bottom);
  getcontext(context);
  context->uc_stack.ss_sp = bottom + sizeof(ucontext_t);
  context->uc_stack.ss_size = bytes - sizeof(ucontext_t);
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  return context;
}

void switch_stack(Context* here, Context to) {
  ucontext_t left;
  *here = &left;
  swapcontext(&left, static_cast<ucontext_t*>(to));
}

#else

// Lays out a stack as if tapedeck_switch_registers had left it: its registers zero, its return address the entry.
Context prepare_stack(char* bottom, size_t bytes, void (*entry)()) {
  auto** top = reinterpret_cast<void**>(bottom + bytes);
#if defined(__x86_64__)
  *--top = nullptr;  // where entry would return to: never used, ends a debugger's backtrace, aligns the stack
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--top = nullptr;  // rbp, rbx, r12-r15
#else
  top -= 20;
  for (int i = 0; i < 20; ++i) top[i] = nullptr;
  top[11] = reinterpret_cast<void*>(entry);  // x30, after x19-x29
#endif
  return top;
}

void switch_stack(Context* here, Context to) { tapedeck_switch_registers(here, to); }

#endif

}  // namespace tapedeck::emulation
