// StepState: what changes from one training step to the next, as one struct in the device's memory. Kernels read and
// advance it, so that a step may be captured once and replayed: nothing in it depends on a number of the host.
#pragma once
#include <cstdint>

#include "engine/tensor.h"
#include "ops/loss_scaler.h"

namespace tapedeck {

struct StepState {
  int64_t step = 0;         // steps asked for so far
  int64_t updates = 0;      // those that changed the values: Adam's t, and the schedule's place
  int64_t batches = 0;      // batches trained on, ever: dropout's counter
  int64_t cursor = 0;       // examples given so far, ever: its remainder by an epoch's length is the place in the epoch
  double loss = 0;          // of the step in progress, as far as its batches have been seen
  double squares = 0;       // of the gradients of its parts, where somebody measures them (gradient_squares.h)
  ScalerState scaler = {};  // the gradients of the step in progress are scale times what they are

  // What the end of a step leaves for the update of the values:
  double norm = 0;                          // of the gradients, without the scale and before clipping
  double rate = 0;                          // learning rate
  double factor = 1;                        // of the gradients: takes the scale out, and clips
  double correction1 = 1, correction2 = 1;  // Adam's 1 / (1−β₁ᵗ) and 1 / √(1−β₂ᵗ)
  int32_t go = 0;                           // 1: this step changes the values
  int32_t halted = 0;                       // 1: a step has failed, and no later one changes anything
};

// What one finished step says to the host.
struct StepRecord {
  int64_t step = -1;  // its number, from 0; −1: none has been written here
  double loss = 0, norm = 0, rate = 0;
  int64_t broken = -1;      // place of the first gradient that is not finite, in the flat array; −1: all are
  int32_t went = 0;         // 1: it changed the values
  int32_t halted = 0;       // 1: no later step changes anything
  ScalerState scaler = {};  // behind it
  float scale = 1;          // that it was made with
  double squares = 0;       // of the gradients of its parts, without the scale
};

// Where the backward pass of a batch begins: dL/dloss = share · scale, of the loss's type.
Tensor seed_of(const StepState* state, const Tensor& loss, double share);

// The end of a batch of `count` examples, behind its backward pass, which still reads the counter of its dropout:
//   loss += share · of_batch     batches += 1     cursor += count
void end_batch(StepState* state, const Tensor& of_batch, double share, int64_t count);

}  // namespace tapedeck
