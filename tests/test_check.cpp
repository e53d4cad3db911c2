// Messages: what a person reads when a CHECK fails, and the layer path that goes with it.
#include "engine/check.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <thread>

#include "engine/scope.h"
#include "engine/shape.h"
#include "engine/tape.h"
#include "tests/message_of.h"

namespace {

void fail() { CHECK(false, "op: no"); }
void fail_as(const char* format) { CHECK(false, format, 1); }
void refuse(int got, int limit) { CHECK(got < limit, "linear: got {} of {}: fix it", got, limit); }
constexpr int refuse_line = __LINE__ - 1;

}  // namespace

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

namespace tapedeck {
namespace {

using test::message_of;

TEST_CASE("check: a message ends in the place inside the project") {
  CHECK_EQ(message_of([] { refuse(4, 3); }),
           "linear: got 4 of 3: fix it    (at tests/test_check.cpp:" + std::to_string(refuse_line) + ")");
  CHECK_EQ(message_of([] { refuse(2, 3); }), "nothing was thrown");
}

TEST_CASE("check: a message names the layer, and forgets it with the scope") {
  // Fault: layers left in the path by an exception are blamed for every later failure.
  {
    Scope outer("mlp");
    Scope inner("in");
    CHECK_EQ(Scope::path(), "mlp.in");
    CHECK(message_of(fail).find("(at mlp.in, tests/test_check.cpp:") != std::string::npos);
    CHECK_THROWS_AS(([&] {
                      Scope lost("lost");
                      Scope deeper("deeper");
                      fail();
                    }()),
                    Error);
    CHECK_EQ(Scope::path(), "mlp.in");
    std::thread([] { CHECK_EQ(Scope::path(), ""); }).join();
  }
  CHECK_EQ(Scope::path(), "");
  CHECK(message_of(fail).find("(at tests/test_check.cpp:") != std::string::npos);
}

TEST_CASE("check: a failing backward names the layer that recorded, once") {
  // Fault: the path of backward's caller comes in front of the layer's, so that a doubled name is reported.
  Scope step("step");
  Tensor x = Tensor::full({}, DType::f64, Device::cpu, 1);
  x.require_gradient();
  Tape tape;
  Tensor y;
  {
    Scope layer("in");
    y = record("bad", Tensor::like(x), {&x}, [](const Tensor&) { fail(); });
  }
  CHECK(message_of([&] { tape.backward(y); }).find("(at step.in, ") != std::string::npos);
  CHECK_EQ(Scope::path(), "step");
}

TEST_CASE("check: an unnamed scope adds nothing to the path") {
  Scope unnamed("");
  CHECK_EQ(Scope::path(), "");
  Scope block("block3");
  Scope again("");
  CHECK_EQ(Scope::path(), "block3");
}

TEST_CASE("check: every kind of value is written as a person expects") {
  // Fault: a size above 2^63 appears as a negative number.
  CHECK_EQ(text("{} {}", true, false), "true false");
  CHECK_EQ(text("{} {}", -7, std::numeric_limits<int64_t>::min()), "-7 -9223372036854775808");
  CHECK_EQ(text("{}", std::numeric_limits<size_t>::max()), "18446744073709551615");
  CHECK_EQ(text("{} {}", uint8_t{200}, int8_t{-100}), "200 -100");
  CHECK_EQ(text("{} {:.2f} {}", 0.5f, 1.0 / 3, 1e-300), "0.5 0.33 1e-300");
  CHECK_EQ(text("{} {}", std::numeric_limits<double>::infinity(), -std::numeric_limits<float>::infinity()), "inf -inf");
  CHECK_EQ(text("{} {} {}", "literal", std::string("string"), std::string_view("view!", 4)), "literal string view");
  CHECK_EQ(text("{} {}", Shape{512, 784}, Shape{}), "[512, 784] []");
  CHECK_EQ(text("a value with {{}} or {} is not formatted twice", "{}"),
           "a value with {} or {} is not formatted twice");
}

TEST_CASE("check: a wrong format string still tells the failure") {
  // Fault: an exception of the formatter replaces the message, or ends the program.
  for (const char* format : {"op: {} and {}", "op: {", "op: {:q}", "op: }", "op: {7}"}) {
    const std::string shown = message_of([&] { fail_as(format); });
    CAPTURE(shown);
    CHECK_EQ(shown.find(format), 0);
    CHECK(shown.find("(at tests/test_check.cpp:") != std::string::npos);
  }
  CHECK_EQ(text("op: {}", "unused values do no harm", 2), "op: unused values do no harm");
}

TEST_CASE("check: failures have types, and a usage error carries no place") {
  CHECK_THROWS_AS(throw UsageError(text("batch: {}", 0)), Error);
  CHECK_EQ(message_of([] { throw UsageError(text("batch: at least 1, got {}", 0)); }), "batch: at least 1, got 0");
  CHECK_THROWS_AS((Shape{int64_t{1} << 40, int64_t{1} << 40}), OutOfMemory);
}

}  // namespace
}  // namespace tapedeck
