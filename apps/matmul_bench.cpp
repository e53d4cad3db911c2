#include "apps/matmul_bench.h"

#include <algorithm>

#include "apps/device_time.h"
#include "apps/made_up.h"
#include "apps/meter.h"
#include "apps/stats.h"
#include "engine/backend.h"
#include "engine/random.h"

namespace tapedeck {
namespace {

std::vector<double> times_vector(const Tensor& matrix, const std::vector<double>& x) {
  const std::vector<double> m = matrix.doubles();
  std::vector<double> out;
  for (size_t i = 0; i < x.size(); ++i) {
    double sum = 0;
    for (size_t j = 0; j < x.size(); ++j) sum += m[i * x.size() + j] * x[j];
    out.push_back(sum);
  }
  return out;
}

}  // namespace

double product_error(const Tensor& a, const Tensor& b, const Tensor& c) {
  std::vector<double> x;
  for (int64_t i = 0; i < a.shape[0]; ++i)
    x.push_back(random_bits(1, 0, site_of("bench.x"), static_cast<uint64_t>(i)).word[0] & 1 ? 1 : -1);
  return relative_error(times_vector(c, x), times_vector(a, times_vector(b, x)));
}

MatmulBench::MatmulBench(int64_t size, Device device, DType dtype)
    : size(size),
      device(device),
      dtype(dtype),
      a_(made_up("bench.a", {size, size}, device, dtype)),
      b_(made_up("bench.b", {size, size}, device, dtype)),
      c_(Tensor::like(a_)) {
  fill(c_, 0);  // touched, so that the first product does not pay for the system's pages
  backend(device).sync();
  const auto call_us = [this] {  // by the host, which may have to generate code
    const double begin = steady_seconds();
    multiply();
    backend(this->device).sync();
    return (steady_seconds() - begin) * 1e6;
  };
  first_us_ = call_us();
  const double next_us = std::max(std::min(call_us(), call_us()), 0.01);
  calls_ = std::clamp<int64_t>(static_cast<int64_t>(1000 / next_us), 1, 10'000);
  a_few_ = std::clamp<int64_t>(static_cast<int64_t>(5e4 / (next_us * static_cast<double>(calls_))), 1, 20);
}

void MatmulBench::round(int64_t blocks) {
  const auto block = [this] {
    for (int64_t i = 0; i < calls_; ++i) multiply();
  };
  const std::vector<WorkTime> took = time_work(device, blocks + 1, block);
  const size_t before = microseconds_.size();
  for (const WorkTime& time : std::span(took).subspan(1))
    microseconds_.push_back(time.device * 1e6 / static_cast<double>(calls_));
  round_medians_.push_back(median(std::span(microseconds_).subspan(before)));
}

double MatmulBench::flops() const {
  const double n = static_cast<double>(size);
  return 2 * n * n * n;
}

double MatmulBench::check() const {
  const double error = product_error(a_, b_, c_);
  const double unit = device == Device::cuda && dtype == DType::f32 && tf32() ? 0x1p-10 : eps(dtype);
  CHECK(error <= 32 * unit, "bench: a product of size {} in {} on {} is off by {:.1e}, and rounding explains {:.1e}",
        size, name(dtype), name(device), error, 32 * unit);
  return error;
}

void MatmulBench::multiply() const {
  gemm(device, {.m = size,
                .n = size,
                .k = size,
                .dtype = dtype,
                .a = a_.data.begin(),
                .b = b_.data.begin(),
                .c = c_.data.begin()});
}

}  // namespace tapedeck
