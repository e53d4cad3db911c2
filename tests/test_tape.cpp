// The tape: what is recorded, what is refused, and that backward is linear in time and memory.
#include "engine/tape.h"

#include <malloc.h>

#include <string>
#include <thread>

#include "engine/backend.h"
#include "ops/ops.h"
#include "tests/leaves.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

namespace tapedeck {
namespace {

using namespace test;

// The same numbers as x; counts how often its backward runs.
Tensor counted(const Tensor& x, int& runs) {
  Tensor y = Tensor::like(x);
  copy(y, x);
  return record("counted", y, {&x}, [dx = want(x), &runs](const Tensor& dy) {
    ++runs;
    dx.give(dy);
  });
}

TEST_CASE("tape: a second backward is refused and changes nothing") {
  // Fault: backward over freed values runs and gives a wrong gradient without a word.
  Tensor x = number(3);
  Tape tape;
  const Tensor y = mul(x, x);
  tape.backward(y);
  CHECK_THROWS_WITH_AS(tape.backward(y), doctest::Contains("already used; values are freed as backward runs"), Error);
  CHECK_EQ(x.gradient().item(), 6);
  CHECK_THROWS_WITH_AS(mul(x, x), doctest::Contains("mul: this tape was already used"), Error);
  CHECK_EQ(x.gradient().item(), 6);
}

TEST_CASE("tape: forty diamonds on top of each other take forty steps") {
  // Fault: backward walks every path, 2^40 of them, or loses some.
  Tensor x = number(1);
  int runs = 0;
  Tape tape;
  Tensor y = x;
  for (int i = 0; i < 40; ++i) {
    y = counted(y, runs);
    y = add(y, y);
  }
  CHECK_EQ(tape.nodes().size(), 80u);
  tape.backward(y);
  CHECK_EQ(runs, 40);
  CHECK_EQ(x.gradient().item(), 0x1p40);
}

size_t heap_bytes() {  // of the C++ heap, where nodes live; 0 under AddressSanitizer, which has one of its own
  const auto use = mallinfo2();
  return use.uordblks + use.hblkhd;
}

TEST_CASE("tape: a chain of a million nodes needs no recursion and bounded memory a node") {
  // Fault: backward or the tape's end recurses once a node and overflows the stack; or every gradient stays alive.
  Arena& arena = backend(Device::cpu).arena();
  const auto before = arena.use();
  Tensor x = number(1);
  const auto chain = [&](int length) {
    Tensor y = x;
    for (int i = 0; i < length; ++i)
      y = record("same", y, {&y}, [dx = want(y)](const Tensor& dy) { dx.give(dy); });  // y shares x's memory
    return y;
  };
  {
    constexpr int length = 1'000'000;
    const size_t heap = heap_bytes();
    Tape tape;
    const Tensor y = chain(length);
    REQUIRE_EQ(tape.nodes().size(), static_cast<size_t>(length));
    CHECK_LE(heap_bytes(), heap + size_t{length} * 1024);
    CHECK_EQ(arena.use().buffers, before.buffers + 1);
    arena.reset_peak();
    tape.backward(y);
    CHECK_LE(arena.use().peak_bytes, before.bytes + 4 * sizeof(double));  // x, the seed, and never one a node
    CHECK_EQ(x.gradient().item(), 1);
  }
  Tape unused;
  chain(300'000);  // and dies without backward
}

TEST_CASE("tape: a long chain of real ops keeps a bounded number of gradients alive") {
  constexpr int length = 20'000;
  Arena& arena = backend(Device::cpu).arena();
  Tensor x = number(1);
  Tape tape;
  Tensor y = x;
  for (int i = 0; i < length; ++i) y = scale(y, i % 2 ? 2 : 0.5);
  const int64_t buffers = arena.use().buffers;
  CHECK_LE(buffers, 10 + length);
  arena.reset_peak();
  const size_t bytes = arena.use().bytes;
  tape.backward(y);
  CHECK_LE(arena.use().peak_bytes, bytes + 4 * sizeof(double));
  CHECK_EQ(x.gradient().item(), 1);
}

TEST_CASE("tape: nothing is recorded without a tape, under NoTape, or for inputs that want no gradient") {
  Tensor x = leaf({1, 2});
  CHECK_FALSE(mul(x, x).wants_gradient());
  Tape tape;
  {
    NoTape off;
    CHECK_FALSE(exp(x).wants_gradient());
    {
      Tape inner;
      CHECK(exp(x).wants_gradient());
      CHECK_EQ(inner.nodes().size(), 1u);
    }
    CHECK_FALSE(exp(x).wants_gradient());
  }
  const Tensor constant = Tensor::full({2}, DType::f64, Device::cpu, 1);
  CHECK_FALSE(exp(constant).wants_gradient());
  CHECK(tape.nodes().empty());
  CHECK(exp(x).wants_gradient());
  CHECK_EQ(tape.nodes().size(), 1u);
  CHECK_EQ(std::string(tape.nodes()[0].op), "exp");
}

TEST_CASE("tape: a loss that cannot be one is refused, and the tape stays usable") {
  Tensor x = leaf({1, 2});
  Tape other;
  const Tensor foreign = sum(x);
  Tape tape;
  const Tensor y = mul(x, x);
  CHECK_THROWS_WITH_AS(tape.backward(y), doctest::Contains("must be one number, got [2]"), Error);
  CHECK_THROWS_WITH_AS(tape.backward(Tensor::full({}, DType::f64, Device::cpu, 1)),
                       doctest::Contains("nothing that leads to this loss wants a gradient"), Error);
  CHECK_THROWS_WITH_AS(tape.backward(foreign), doctest::Contains("not recorded on this tape"), Error);
  CHECK_THROWS_WITH_AS(tape.backward(number(1)), doctest::Contains("not recorded on this tape"), Error);
  tape.backward(sum(y));
  CHECK_EQ(gradient(x), Values{2, 4});
  other.backward(foreign);
  CHECK_EQ(gradient(x), Values{3, 5});
}

TEST_CASE("tape: the seed scales every gradient, and a loss of shape [1, 1] is one number") {
  Tensor x = leaf({3});
  Tape tape;
  tape.backward(reshape(mul(x, x), {1, 1}), 0.5);
  CHECK_EQ(gradient(x), Values{3});
}

TEST_CASE("tape: branches that do not reach the loss do not run, nor what came after it") {
  Tensor x = leaf({1, 2}), unused = leaf({1, 2});
  int useful = 0, useless = 0;
  Tape tape;
  const Tensor a = counted(x, useful);
  counted(counted(x, useless), useless);
  counted(unused, useless);
  const Tensor loss = sum(a);
  counted(loss, useless);
  tape.backward(loss);
  CHECK_EQ(useful, 1);
  CHECK_EQ(useless, 0);
  CHECK_EQ(gradient(x), Values{1, 1});
  CHECK_THROWS_WITH_AS(unused.gradient(), doctest::Contains("no backward pass"), Error);
}

TEST_CASE("tape: an exception in a backward leaves the thread's tape, scope and memory in order") {
  Arena& arena = backend(Device::cpu).arena();
  const int64_t buffers = arena.use().buffers;
  {
    Tensor x = leaf({1, 2});
    Tape outer;
    {
      Tape tape;
      const Tensor y = scale(x, 2);
      const Tensor bad = record("bad", Tensor::like(y), {&y}, [](const Tensor&) { throw Error("bad: no"); });
      CHECK_THROWS_WITH_AS(tape.backward(sum(bad)), "bad: no", Error);
      CHECK_THROWS_AS(x.gradient(), Error);
      CHECK_THROWS_WITH_AS(scale(x, 2), doctest::Contains("already used"), Error);  // still the tape of this thread
      CHECK_THROWS_WITH_AS(tape.backward(y), doctest::Contains("already used"), Error);
    }
    outer.backward(sum(scale(x, 2)));
    CHECK_EQ(gradient(x), Values{2, 2});
  }
  CHECK_EQ(arena.use().buffers, buffers);
}

TEST_CASE("tape: the innermost tape records, a tape inside a backward works on its own") {
  Tensor x = number(3);
  Tape outer;
  const Tensor y = mul(x, x);
  {
    Tape inner;
    inner.backward(scale(x, 100));
    CHECK_EQ(outer.nodes().size(), 1u);
  }
  CHECK_EQ(x.gradient().item(), 100);
  x.grad->fresh = true;
  const Tensor z = record("square", y, {&y}, [y, dy_wanted = want(y)](const Tensor& dz) {
    Tensor again = y;
    again.require_gradient();
    Tape tape;
    tape.backward(mul(mul(again, again), dz));
    dy_wanted.give(again.gradient());
  });
  outer.backward(z);
  CHECK_EQ(x.gradient().item(), 2 * 9 * 6);
}

TEST_CASE("tape: each thread has its own") {
  const auto work = [](double factor, double& result) {
    Tensor x = number(factor);
    for (int i = 0; i < 200; ++i) {
      x.grad->fresh = true;
      Tape tape;
      tape.backward(mul(x, mul(x, x)));
    }
    result = x.gradient().item();
  };
  Tensor x = number(1);
  Tape tape;
  const Tensor y = mul(x, x);
  double mine = 0, theirs = 0;
  std::thread other([&] {
    CHECK_FALSE(mul(x, x).wants_gradient());  // the main thread's tape does not record here
    work(2, theirs);
  });
  work(3, mine);
  other.join();
  CHECK_EQ(theirs, 12);
  CHECK_EQ(mine, 27);
  tape.backward(y);
  CHECK_EQ(x.gradient().item(), 2);
}

}  // namespace
}  // namespace tapedeck
