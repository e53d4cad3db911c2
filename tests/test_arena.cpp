// The arena against a plain model of best fit, its checks for writes past the end, and what it says when it is full.
#include "engine/arena.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/backend.h"
#include "engine/check.h"
#include "engine/scope.h"
#include "engine/tensor.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#if WITH_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace tapedeck {
namespace {

constexpr size_t mib = 1 << 20;

char* take(Arena& arena, size_t bytes) { return static_cast<char*>(arena.allocate(bytes)); }

// What one buffer takes beyond its bytes, rounded up: the red zone, where there is one.
size_t red_zone(Arena& arena) {
  char *a = take(arena, 256), *b = take(arena, 256);
  arena.release(a);
  arena.release(b);
  return static_cast<size_t>(b - a) - 256;
}
size_t rounded(size_t bytes) { return (std::max<size_t>(bytes, 1) + 255) / 256 * 256; }

template <class F>
std::string out_of_memory(const F& f) {
  try {
    f();
  } catch (const OutOfMemory& e) {
    return e.what();
  }
  return "no OutOfMemory";
}
bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST_CASE("arena: a buffer goes into the smallest gap that holds it") {
  Arena arena("test", mib, false);
  char* large = take(arena, 4096);
  take(arena, 256);
  char* small = take(arena, 1024);
  take(arena, 256);
  char* middle = take(arena, 2048);
  take(arena, 256);
  for (char* gap : {large, small, middle}) arena.release(gap);
  CHECK_EQ(take(arena, 900), small);
  CHECK_EQ(take(arena, 2000), middle);
  CHECK_EQ(take(arena, 2049), large);
}

TEST_CASE("arena: addresses are aligned, distinct and writable, for 0 bytes too") {
  Arena arena("test", mib, false);
  char* before = nullptr;
  for (size_t bytes : {0, 1, 255, 256, 257, 0, 1000}) {
    char* address = take(arena, bytes);
    CHECK_EQ(reinterpret_cast<uintptr_t>(address) % Arena::alignment, 0u);
    CHECK_NE(address, before);
    std::memset(address, 1, bytes);
    before = address;
  }
}

TEST_CASE("arena: freed neighbours join, in whatever order they go") {
  Arena arena("test", mib, false);
  std::mt19937 random(7);
  const size_t whole = arena.capacity() - red_zone(arena);
  for (int round = 0; round < 20; ++round) {
    std::vector<char*> all;
    for (int i = 0; i < 100; ++i) all.push_back(take(arena, 1 + random() % 8000));
    std::shuffle(all.begin(), all.end(), random);
    for (char* address : all) arena.release(address);
    arena.release(take(arena, whole));  // throws unless there is one gap again
  }
  CHECK_EQ(arena.use().buffers, 0);
}

TEST_CASE("arena: the same calls give the same addresses, and the model of best fit gives them too") {
  Arena arena("test", mib, false);
  const size_t zone = red_zone(arena);
  char* const start = take(arena, 1);
  arena.release(start);
  std::map<size_t, size_t> live;  // offset -> padded
  size_t bytes_in_use = 0, peak = 0, refused = 0;
  std::map<size_t, size_t> asked;
  const auto best_fit = [&](size_t padded) {
    size_t best = SIZE_MAX, best_gap = SIZE_MAX, end = 0;
    const auto look = [&](size_t from, size_t to) {
      if (to - from >= padded && to - from < best_gap) best = from, best_gap = to - from;
    };
    for (const auto& [offset, size] : live) {
      look(end, offset);
      end = offset + size;
    }
    look(end, arena.capacity());
    return best;
  };
  std::mt19937 random(11);
  for (int step = 0; step < 4000; ++step) {
    if (live.empty() || random() % 100 < 55) {
      const size_t bytes = random() % (random() % 10 == 0 ? 100000 : 3000), padded = rounded(bytes) + zone;
      const size_t expected = best_fit(padded);
      if (expected == SIZE_MAX) {
        ++refused;
        REQUIRE_THROWS_AS(arena.allocate(bytes), OutOfMemory);
        continue;
      }
      char* address = take(arena, bytes);
      REQUIRE_EQ(static_cast<size_t>(address - start), expected);
      std::memset(address, static_cast<int>(expected / 256 % 251), bytes);
      live[expected] = padded, asked[expected] = bytes;
      bytes_in_use += bytes, peak = std::max(peak, bytes_in_use);
    } else {
      auto which = live.begin();
      std::advance(which, random() % live.size());
      const size_t offset = which->first, bytes = asked[offset];
      for (size_t i = 0; i < bytes; ++i)  // nobody else wrote here
        if (static_cast<unsigned char>(start[offset + i]) != offset / 256 % 251) FAIL("overwritten at ", offset + i);
      arena.release(start + offset);
      bytes_in_use -= bytes;
      live.erase(which);
    }
    REQUIRE_EQ(arena.use().bytes, bytes_in_use);
    REQUIRE_EQ(arena.use().buffers, static_cast<int64_t>(live.size()));
  }
  CHECK_EQ(arena.use().peak_bytes, std::max(peak, size_t{512}));  // 512: red_zone() asked for that much at once
  CHECK_GT(refused, 0u);                                          // the slab was small enough to fill up
}

TEST_CASE("arena: the peak is the most that was in use at once") {
  Arena arena("test", mib, false);
  char* a = take(arena, 1000);
  char* b = take(arena, 500);
  arena.release(a);
  take(arena, 100);
  CHECK_EQ(arena.use().bytes, 600u);
  CHECK_EQ(arena.use().peak_bytes, 1500u);
  arena.reset_peak();
  CHECK_EQ(arena.use().peak_bytes, 600u);
  arena.release(b);
  CHECK_EQ(arena.use().peak_bytes, 600u);
}

TEST_CASE("arena: who watches hears of each peak once, and leaves the peak of the whole alone") {
  Arena arena("test", mib, false);
  char* const a = take(arena, 1000);
  arena.watch();
  arena.release(take(arena, 500));
  const Arena::Use first = arena.watch(), second = arena.watch();
  CHECK_EQ(first.bytes, 1000u);
  CHECK_EQ(first.peak_bytes, 1500u);
  CHECK_EQ(second.peak_bytes, 1000u);
  arena.release(a);
  take(arena, 100);
  CHECK_EQ(arena.watch().peak_bytes, 1000u);
  CHECK_EQ(arena.watch().peak_bytes, 100u);
  CHECK_EQ(arena.use().peak_bytes, 1500u);
}

TEST_CASE("arena: fresh memory of a checked arena is NaN, also where something lay before") {
  Arena arena("test", mib, true);
  for (int round = 0; round < 2; ++round) {
    auto* f = static_cast<float*>(arena.allocate(37 * sizeof(float)));
    for (int i = 0; i < 37; ++i) {
      CHECK(std::isnan(f[i]));
      f[i] = 1;
    }
    auto* d = static_cast<double*>(arena.allocate(5 * sizeof(double)));
    for (int i = 0; i < 5; ++i) {
      CHECK(std::isnan(d[i]));
      d[i] = 1;
    }
    arena.release(f);
    arena.release(d);
  }
}

TEST_CASE("arena: one byte written past the end is found, while the buffer lives and after its release") {
  // Fault: a kernel writes past its output; the neighbour changes and nobody notices.
  Arena arena("test", mib, true);
  for (size_t bytes : {1, 100, 255, 256, 257, 4096}) {
    CAPTURE(bytes);
    char* address = take(arena, bytes);
    std::memset(address, 0, bytes);
    CHECK_NOTHROW(arena.check_red_zones());
#if WITH_ASAN
    CHECK(__asan_address_is_poisoned(address + bytes));  // the write itself would end this program
    CHECK_FALSE(__asan_address_is_poisoned(address + bytes - 1));
    arena.release(address);
    CHECK(__asan_address_is_poisoned(address));
#else
    const std::string found = "arena test: something wrote past the end of a buffer of " + std::to_string(bytes);
    char& past = address[bytes];
    const char before = past;
    past = 0;
    CHECK_THROWS_WITH_AS(arena.check_red_zones(), (found + " bytes").c_str(), Error);
    past = before;
    CHECK_NOTHROW(arena.check_red_zones());
    past = 0;
    arena.release(address);
    CHECK_THROWS_WITH_AS(arena.check_red_zones(), (found + " bytes, freed since").c_str(), Error);
    CHECK_NOTHROW(arena.check_red_zones());  // told once
#endif
  }
}

TEST_CASE("arena: checks can be switched on for buffers from then on") {
  Arena arena("test", mib, false);
  char* plain = take(arena, 100);
  arena.set_checked(true);
  auto* checked = static_cast<float*>(arena.allocate(sizeof(float)));
  CHECK(std::isnan(*checked));
  arena.set_checked(false);
  CHECK_NOTHROW(arena.check_red_zones());
  arena.release(checked);
  arena.release(plain);
  CHECK_NOTHROW(arena.check_red_zones());
}

TEST_CASE("arena: out of memory has a type of its own and says asked, free and total") {
  // Fault: out of memory is recognised by the text of its message, so that another wording is not caught.
  Arena arena("test", 4 * mib, false);
  Scope scope("mlp.in");
  char* low = take(arena, mib);
  char* high = take(arena, 2 * mib);
  arena.release(low);
  const std::string message = out_of_memory([&] { arena.allocate(2 * mib); });
  CAPTURE(message);
  for (const char* part : {"arena test", "wanted 2.0 MiB for mlp.in", " of 4.0 MiB are free", "(largest gap 1.0 MiB)",
                           "1 tensors hold 2.0 MiB"})
    CHECK(has(message, part));
  arena.release(high);
  CHECK_NE(arena.allocate(3 * mib), nullptr);
}

TEST_CASE("arena: memory that a hold keeps is in use, until the hold dies") {
  // Fault: a captured step keeps memory that no peak counts, and a run takes more than it says.
  alignas(Arena::alignment) char slab[8192];
  Arena arena("test", slab, sizeof slab);
  auto hold = std::make_shared<Arena::Hold>(arena);
  for (int round = 0; round < 2; ++round) {
    arena.start_holding(*hold);
    void* const lent = arena.allocate(1024);
    void* const kept = arena.allocate(2048);
    arena.release(lent);
    arena.stop_holding(hold);
    CHECK_EQ(arena.use().bytes, 3072);
    arena.release(kept);
    CHECK_EQ(arena.use().bytes, 3072);
    CHECK_EQ(arena.use().buffers, 0);
    CHECK_EQ(arena.use().peak_bytes, 3072);
  }
  void* const other = arena.allocate(512);
  CHECK_EQ(arena.use().peak_bytes, 3584);
  hold.reset();
  CHECK_EQ(arena.use().bytes, 512);
  arena.release(other);
  arena.reset_peak();
  CHECK_EQ(arena.use().peak_bytes, 0);
}

TEST_CASE("arena: a limit holds, can be raised again, and cannot exceed the slab") {
  Arena arena("test", 4 * mib, false);
  arena.limit(2 * mib);
  char* a = take(arena, mib);
  CHECK(has(out_of_memory([&] { arena.allocate(mib + 1); }), " of 2.0 MiB are free"));
  arena.limit(mib / 2);  // below what is in use: nothing more is given
  CHECK(has(out_of_memory([&] { arena.allocate(1); }), "0.0 KiB of 512.0 KiB are free"));
  arena.limit(4 * mib);
  arena.release(take(arena, 2 * mib));
  arena.release(a);
  CHECK_THROWS_AS(arena.limit(4 * mib + 1), UsageError);
}

TEST_CASE("arena: sizes near 2^63 and 2^64 are out of memory and leave the arena as it was") {
  // Fault: a size overflows, a small buffer comes back, and the program writes far past it.
  Arena arena("test", mib, false);
  take(arena, 1000);
  for (size_t bytes : {size_t{1} << 63, SIZE_MAX, SIZE_MAX - 255, SIZE_MAX - 600, mib + 1})
    CHECK_THROWS_AS(arena.allocate(bytes), OutOfMemory);
  CHECK_EQ(arena.use().bytes, 1000u);
  CHECK_NE(arena.allocate(1000), nullptr);

  const int64_t huge = int64_t{1} << 40;
  CHECK_THROWS_AS((Shape{huge, huge}), OutOfMemory);
  CHECK_THROWS_AS((Shape{INT64_MAX}), OutOfMemory);
  CHECK_THROWS_AS((Shape{int64_t{1} << 62, 2, 2}), OutOfMemory);
  CHECK_THROWS_AS((Shape{3, -1}), Error);
  CHECK_EQ((Shape{0, huge}).count(), 0);
  CHECK_THROWS_AS(Tensor::empty({huge, 1000}, DType::f32, Device::cpu), OutOfMemory);
  CHECK_THROWS_AS(Tensor::empty({huge, 1000}, DType::f64, Device::emulated), OutOfMemory);
}

TEST_CASE("arena: two threads may allocate and release at once") {
  Arena arena("test", 64 * mib, true);
  const auto work = [&arena](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::pair<char*, size_t>> mine;
    int wrong = 0;
    for (int step = 0; step < 3000; ++step) {
      if (mine.size() < 20 && random() % 2) {
        const size_t bytes = 1 + random() % 2000;
        mine.push_back({take(arena, bytes), bytes});
        std::memset(mine.back().first, static_cast<int>(seed), bytes);
      } else if (!mine.empty()) {
        const auto [address, bytes] = mine.back();
        for (size_t i = 0; i < bytes; ++i) wrong += address[i] != static_cast<char>(seed);
        arena.release(address);
        mine.pop_back();
      }
    }
    for (const auto& [address, bytes] : mine) arena.release(address);
    return wrong;
  };
  int wrong[2] = {};
  std::thread other([&] { wrong[1] = work(2); });
  wrong[0] = work(1);
  other.join();
  CHECK_EQ(wrong[0] + wrong[1], 0);
  CHECK_EQ(arena.use().buffers, 0);
  CHECK_EQ(arena.use().bytes, 0u);
  CHECK_NOTHROW(arena.check_red_zones());
}

}  // namespace
}  // namespace tapedeck
