// MatmulBench: C = A·B of n×n numbers in one device's memory, timed round by round in blocks of calls, and its answer
// checked. What `bench matmul`, `bench peaks` and `bench threads` time.
#pragma once
#include <vector>

#include "engine/tensor.h"

namespace tapedeck {

// ‖C·x − A·(B·x)‖ / ‖A·(B·x)‖ in f64, for x of ±1 and n×n matrices: n² work finds out whether a product of n³ is right
// [Freivalds 1979].
double product_error(const Tensor& a, const Tensor& b, const Tensor& c);

class MatmulBench {
 public:
  // Multiplies once and keeps what that took: libraries choose or generate their code then.
  MatmulBench(int64_t size, Device device, DType dtype);

  // Blocks of as many calls as take about a millisecond; the first is left out.
  void round(int64_t blocks);

  int64_t a_few() const { return a_few_; }  // blocks, for about 50 ms, at most 20
  int64_t calls() const { return calls_; }  // of a block
  double flops() const;                     // of a call: 2n³
  double first_us() const { return first_us_; }
  const std::vector<double>& microseconds() const { return microseconds_; }  // a call, the mean of each block
  const std::vector<double>& round_medians() const { return round_medians_; }

  double check() const;  // product_error() of what it computed; throws Error beyond what rounding explains

  const int64_t size;
  const Device device;
  const DType dtype;

 private:
  void multiply() const;
  const Tensor a_, b_, c_;
  double first_us_ = 0;
  int64_t calls_ = 1, a_few_ = 1;
  std::vector<double> microseconds_, round_medians_;
};

}  // namespace tapedeck
