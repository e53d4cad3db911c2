// The race detector on what memory holds and where it ends: values never written, places out of bounds, neighbours of
// one and two bytes, copies, and what the host may not touch.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <optional>
#include <string>

#include "engine/backend.h"
#include "ops/ops.h"
#include "tests/race_launch.h"

using namespace tapedeck;
using namespace tapedeck::emulation;

namespace {

Tensor floats(int64_t count) { return Tensor::empty({count}, DType::f32, Device::emulated); }

}  // namespace

TEST_CASE("race: a read of shared memory that the block has not written") {
  if (unwatched()) return;
  const Tensor out = floats(64);
  const auto all_but = [to = out.ptr<float>()](int left_out) {
    return [=](int64_t, int lane) {
      auto* const s = reinterpret_cast<float*>(shared_memory());
      if (lane != left_out) s[lane] = 1;
      barrier(Site::here());
      to[lane] = s[63 - lane];
    };
  };
  finds(2, 64, 256, all_but(5),
        {"lane 58: reads byte 20 of the 256 bytes of shared memory at tests/test_race_memory.cpp:",
         ": nothing was written there before"});
  finds_nothing(1, 64, 256, all_but(-1));
}

TEST_CASE("race: a read of device memory that nobody has written") {
  if (unwatched()) return;
  const Tensor x = floats(64), y = floats(64);
  const auto write = [to = x.ptr<float>()](int64_t, int lane) {
    if (lane < 63) to[lane] = 1;
  };
  const auto read = [from = x.ptr<float>(), to = y.ptr<float>()](int lanes) {
    return [=](int64_t, int lane) {
      if (lane < lanes) to[lane] = from[lane];
    };
  };
  launch(1, 64, 0, write);
  finds_nothing(1, 64, 0, read(63));
  finds(1, 64, 0, read(64),
        {"lane 63: reads byte 252 of a buffer of 256 bytes at", ": nothing was written there before"});
  fill(x, 0);
  finds_nothing(1, 64, 0, read(64));
}

TEST_CASE("race: the kernels of ops, and fills, are watched like those of tests") {
  if (unwatched()) return;
  const Tensor x = floats(64);
  CHECK_THROWS_WITH_AS(relu(x), doctest::Contains("nothing was written there before"), Error);
  fill(x, 1);
  relu(x);
}

TEST_CASE("race: device memory behind a buffer, in its red zone and far beyond") {
  if (unwatched()) return;
  const Tensor x = floats(15), y = Tensor::full({64}, DType::f32, Device::emulated, 1);
  const auto read = [from = x.ptr<float>(), to = y.ptr<float>()](int64_t, int lane) {
    if (lane == 15) to[lane] = from[lane];
  };
  const auto write = [to = x.ptr<float>()](int64_t offset) {
    return [=](int64_t, int lane) {
      if (lane == 40) to[offset] = 1;
    };
  };
  finds(1, 64, 0, read, {"lane 15: reads 0 bytes behind a buffer of 60 bytes at", ": out of bounds"});
  finds(1, 64, 0, write(1 << 28), {"lane 40: writes ", " bytes behind a buffer of ", ": out of bounds"});
  finds_nothing(1, 64, 0, write(14));
}

TEST_CASE("race: device memory that has been freed") {
  if (unwatched()) return;
  std::optional<Tensor> x = Tensor::full({64}, DType::f32, Device::emulated, 1);
  const Tensor y = floats(64);
  const auto read = [from = x->ptr<float>(), to = y.ptr<float>()](int64_t, int lane) { to[lane] = from[lane]; };
  finds_nothing(1, 64, 0, read);
  x.reset();
  finds(1, 64, 0, read, {"reads byte ", " of a buffer of 256 bytes, which has been freed at", ": out of bounds"});
}

TEST_CASE("race: shared memory behind its size") {
  if (unwatched()) return;
  const auto write = [](int offset) {
    return [=](int64_t, int lane) {
      if (lane == 3) shared_memory()[offset] = 1;
    };
  };
  for (const int offset : {100, 1000, 60000})
    finds(2, 32, 100, write(offset),
          {"lane 3: writes byte " + std::to_string(offset) + " of the 100 bytes of shared memory", ": out of bounds"});
  finds_nothing(2, 32, 100, write(99));
}

TEST_CASE("race: neighbours of one and two bytes are places of their own") {
  if (unwatched()) return;
  const Tensor memory = floats(64);
  const auto write = [to = memory.ptr<float>()]<class T>(T, int lanes_a_place) {
    return [=](int64_t block, int lane) {
      const auto i = block * 64 + lane;
      T* const place = reinterpret_cast<T*>(to) + i / lanes_a_place;
      *place = T(lane);
      *place = T(*place + 1);
    };
  };
  finds_nothing(2, 64, 0, write(uint8_t{}, 1));
  finds_nothing(2, 64, 0, write(uint16_t{}, 1));
  finds_nothing(1, 64, 0, write(float{}, 1));
  finds_nothing(1, 32, 0, write(double{}, 1));
  finds(2, 64, 0, write(uint8_t{}, 2), {"race: writes byte ", "and block ", "lanes of a warp need"});
  finds(2, 64, 0, write(uint16_t{}, 2), {"race: writes byte ", "lanes of a warp need"});
  // A byte of a word that another lane writes as a whole.
  finds(1, 32, 0,
        [to = memory.ptr<float>()](int64_t, int lane) {
          if (lane == 3) to[5] = 1;
          if (lane == 4) reinterpret_cast<uint8_t*>(to)[22] = 1;
        },
        {"race: writes byte 2"});
}

TEST_CASE("race: memcpy and memset in a kernel are watched like loads and stores") {
  if (unwatched()) return;
  const Tensor x = floats(32 * 8 + 1), y = floats(32 * 8);
  const auto copy = [from = x.ptr<float>(), to = y.ptr<float>()](int count) {
    return [=](int64_t, int lane) { std::memcpy(to + 8 * lane, from + 8 * lane, count * sizeof(float)); };
  };
  const auto set = [to = x.ptr<float>()](int count) {
    return [=](int64_t, int lane) { std::memset(to + 8 * lane, 0, count * sizeof(float)); };
  };
  finds_nothing(1, 32, 0, set(7));
  finds_nothing(1, 32, 0, copy(7));
  finds(1, 32, 0, copy(8), {"reads byte ", ": nothing was written there before"});
  finds(1, 32, 0, set(9), {"race: writes byte"});
}

TEST_CASE("race: a copy that leaves its buffer is refused") {
  if (unwatched()) return;
  const Tensor x = Tensor::full({64}, DType::f32, Device::emulated, 0);
  std::vector<float> host(65);
  Backend& device = backend(Device::emulated);
  CHECK_THROWS_WITH_AS(device.copy(host.data(), x.ptr<float>(), 65 * sizeof(float)),
                       doctest::Contains("reads 0 bytes behind a buffer of 256 bytes: out of bounds"), Error);
  device.copy(host.data(), x.ptr<float>(), 64 * sizeof(float));
}

TEST_CASE("race: host code that touches device memory ends the program, with its line") {
  if (unwatched()) return;
  const Tensor x = Tensor::full({64}, DType::f32, Device::emulated, 1);
  int ends[2];
  REQUIRE_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // doctest would report a crash of its own
    dup2(ends[1], STDERR_FILENO);
    _exit(x.ptr<float>()[3] == 1 ? 1 : 2);
  }
  close(ends[1]);
  std::string said;
  char part[256];
  for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;) said.append(part, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  check_says(said, {"host code reads byte 12 of a buffer of 256 bytes at tests/test_race_memory.cpp:", "copy it with"});
}
