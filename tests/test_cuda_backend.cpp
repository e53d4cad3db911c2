// What only a GPU can show of Device::cuda: launches, the two queues, host copies of every size, events, capture.
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "engine/backend.h"
#include "engine/launch.h"
#include "engine/pinned.h"
#include "engine/tensor.h"
#include "tests/gpu.h"
#include "tests/message_of.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

namespace tapedeck {
namespace {

using test::message_of;
using test::no_gpu;

Backend& gpu() { return backend(Device::cuda); }

struct AddTo {  // y += x
  const float* x;
  float* y;
  HD void operator()(int64_t i) const { y[i] += x[i]; }
};
void add(const Tensor& y, const Tensor& x) { each(Device::cuda, y.count(), AddTo{x.ptr<float>(), y.ptr<float>()}); }

struct RowSums {
  const float* x;
  float* sums;
  int64_t cols;
  HD void operator()(Block b, int64_t row) const {
    const float total = b.sum(cols, [&](int64_t j) { return x[row * cols + j]; });
    if (b.lane == 0) sums[row] = total;
  }
};

struct Count {  // a kernel that takes a while
  float* x;
  int64_t rounds;
  HD void operator()(int64_t i) const {
    for (int64_t k = 0; k < rounds; ++k) x[i] = x[i] * 0.5f + 1;
  }
};

Tensor numbers(int64_t n, double value) { return Tensor::full({n}, DType::f32, Device::cuda, value); }

}  // namespace

TEST_CASE("on a GPU: kernels compute what the CPU does, at ragged sizes, by warps and blocks") {
  if (no_gpu()) return;
  for (int64_t n : {1, 31, 33, 255, 257, 100003}) {
    const Tensor y = numbers(n, 1);
    add(y, numbers(n, 2));
    CHECK(y.doubles() == std::vector<double>(static_cast<size_t>(n), 3));
  }
  for (int64_t cols : {1, 31, 33, 1024, 1025, 5000}) {
    const Tensor x = Tensor::full({3, cols}, DType::f32, Device::cuda, 1), sums = numbers(3, 0);
    rows(Device::cuda, 3, RowSums{x.ptr<float>(), sums.ptr<float>(), cols});
    CHECK(sums.doubles() == std::vector<double>(3, static_cast<double>(cols)));
  }
}

TEST_CASE("on a GPU: copies of any size arrive whole, and the source may change at once") {
  if (no_gpu()) return;
  for (size_t n : {size_t{1}, size_t{1000}, size_t{1} << 20, (size_t{1} << 20) + 1, size_t{5} << 20}) {
    std::vector<float> source(n);
    for (size_t i = 0; i < n; ++i) source[i] = static_cast<float>(i % 1013);
    const std::vector<float> before = source;
    const Tensor x = Tensor::empty({static_cast<int64_t>(n)}, DType::f32, Device::cuda);
    gpu().copy(x.data.begin(), source.data(), n * sizeof(float));
    source.assign(n, -1);
    CHECK(x.values<float>() == before);
    const Tensor y = Tensor::like(x);
    copy(y, x);
    CHECK(y.values<float>() == before);
  }
}

TEST_CASE("on a GPU: a tensor goes from the emulated device to the GPU and back") {
  if (no_gpu()) return;
  const Tensor here = Tensor::full({1000}, DType::f32, Device::emulated, 7);
  const Tensor there = here.to(Device::cuda);
  CHECK(there.doubles() == here.doubles());
  fill(there, 8);
  CHECK(there.to(Device::emulated).doubles() == std::vector<double>(1000, 8));
}

TEST_CASE("on a GPU: an event orders the transfer queue before the compute queue, from another thread too") {
  if (no_gpu()) return;
  const int64_t n = 1 << 22;
  const Tensor x = numbers(n, 0), y = numbers(n, 0);
  PinnedBuffer from(Device::cuda, x.bytes());
  std::thread loader([&] {
    for (int64_t i = 0; i < n; ++i) static_cast<float*>(from.begin())[i] = 5;
    const auto copied = gpu().event();
    gpu().copy_later(Queue::transfer, x.data.begin(), from.begin(), x.bytes());
    gpu().record(*copied, Queue::transfer);
    gpu().wait(Queue::compute, *copied);
  });
  loader.join();
  add(y, x);
  CHECK(y.values<float>() == std::vector<float>(static_cast<size_t>(n), 5));
}

TEST_CASE("on a GPU: events measure the time between them") {
  if (no_gpu()) return;
  const Tensor x = numbers(1 << 20, 1);
  const auto begin = gpu().event(), end = gpu().event();
  gpu().record(*begin, Queue::compute);
  each(Device::cuda, x.count(), Count{x.ptr<float>(), 1000});
  gpu().record(*end, Queue::compute);
  gpu().wait(*end);
  CHECK(gpu().seconds(*begin, *end) > 0);
}

TEST_CASE("on a GPU: kernels write pinned memory, which the host reads once it has waited") {
  if (no_gpu()) return;
  PinnedBuffer ring(Device::cuda, 64 * sizeof(float));
  auto* const at = static_cast<float*>(ring.begin());
  for (int i = 0; i < 64; ++i) at[i] = 1;
  each(Device::cuda, 64, Count{at, 3});
  gpu().sync();
  for (int i = 0; i < 64; ++i) CHECK(at[i] == 1.875f);
}

TEST_CASE("on a GPU: a captured graph runs at replay only, and again each time") {
  if (no_gpu()) return;
  const Tensor y = numbers(1000, 0), x = numbers(1000, 1);
  const auto graph = gpu().capture([&] {
    CHECK(gpu().capturing());
    add(y, x);
    add(y, x);
  });
  CHECK_FALSE(gpu().capturing());
  CHECK(y.doubles()[999] == 0);
  CHECK(graph->nodes() == 2);
  for (int i = 0; i < 3; ++i) graph->replay();
  CHECK(y.doubles()[999] == 6);
}

TEST_CASE("on a GPU: what may not be done while capturing is refused in words, and ends the capture") {
  if (no_gpu()) return;
  const Tensor x = numbers(8, 1);
  const std::string read = message_of([&] { gpu().capture([&] { x.doubles(); }); });
  CHECK(read.find("a step is being captured; return the tensor from the step and read it after replay") !=
        std::string::npos);
  CHECK(message_of([&] { gpu().capture([&] { gpu().sync(); }); }).find("a step is being captured") !=
        std::string::npos);
  CHECK_FALSE(gpu().capturing());
  CHECK(x.doubles()[0] == 1);
  const auto graph = gpu().capture([&] { PinnedBuffer small(Device::cuda, 8), moved(std::move(small)); });
  CHECK(graph->nodes() == 0);
}

TEST_CASE("on a GPU: a queued copy of memory that is not pinned is refused") {
  if (no_gpu()) return;
  std::vector<float> pageable(8);
  const Tensor x = numbers(8, 1);
  CHECK(message_of([&] {
          gpu().copy_later(Queue::transfer, x.data.begin(), pageable.data(), 32);
        }).find("not pinned") != std::string::npos);
}

}  // namespace tapedeck
