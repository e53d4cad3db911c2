// Recomputation: less is kept for backward, and made again there.  [Chen et al. 2016, arXiv:1604.06174]
//
// recompute(part, inputs) is part(inputs), but the tape keeps only the inputs. Backward runs the part again on a tape
// of its own, and then that tape. It writes gradients where it would have written them at once, in the same order:
// every gradient is bitwise the one without recompute. What is computed again is what backward reads: not the last
// product of the part, nor what else comes only out of it.
//
// A recipe does the same for a single value that is cheap to make from others which are kept anyway: the norm's output
// from its input, an activation's from what went in.
#pragma once
#include <functional>
#include <vector>

#include "engine/tape.h"

namespace tapedeck {

// A function of tensors that does the same whenever it is called: once now and once in backward, when whatever it holds
// by reference must still be there. Parameters and other tensors that it holds get their gradients as always.
using Part = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

std::vector<Tensor> recompute(const Part& part, const std::vector<Tensor>& inputs);
Tensor recompute(const std::function<Tensor(const Tensor&)>& part, const Tensor& x);

// Whether a node of this op stands on a tape for recompute() alone, and hands on what other ops have made.
bool of_recompute(const char* op);

struct Recipe {
  Device device;
  std::function<Tensor()> make;  // the value, bit by bit
};

// While it lives, ops of its thread leave recipes of what they put out, if `on` and they know one.
class Remaking {
 public:
  explicit Remaking(bool on);
  ~Remaking();
  Remaking(const Remaking&) = delete;
  Remaking& operator=(const Remaking&) = delete;

 private:
  bool outer_;
};
bool remaking();  // and a tape records

// While it lives, what its thread computes again in backward is timed; the device is waited for around it.
class RecomputeClock {
 public:
  RecomputeClock();
  ~RecomputeClock();
  RecomputeClock(const RecomputeClock&) = delete;
  RecomputeClock& operator=(const RecomputeClock&) = delete;
  double seconds() const { return seconds_; }

  class Timed;  // one time, for recompute.cpp and tape.cpp
 private:
  static RecomputeClock*& current();
  RecomputeClock* outer_;
  double seconds_ = 0;
};
class RecomputeClock::Timed {
 public:
  explicit Timed(Device device);
  ~Timed();
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  double now() const;
  RecomputeClock* const clock_;  // null: nobody times
  const Device device_;
  double start_ = 0;
};

}  // namespace tapedeck
