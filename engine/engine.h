// tapedeck's engine: numbers, memory, devices and the tape; it knows no op. This header includes what most
// who use it need.
//
// A map of the house, in the order that a newcomer reads:
//   apps/models/mlp.h       a model, as one would draw it
//   apps/trainer.cpp        what happens to it in a training run
//   ops/ops.h               every op: shapes, formula, source
//   ops/softmax.cpp         one op whole: shape check, forward, backward, formula
//   engine/tape.cpp         how backward finds its way: a vector, popped from the end
//   engine/block.h          the workers that share a row, on a CPU thread, an emulated GPU block, a GPU block
//   engine/launch.h         map, each and rows: how a functor is run on a device
//   tests/test_ops.cpp      what we promise of each op, a line each
//
// And the rest of this folder, from the bottom up:
//   check, site, scope      errors that say it to a person, with their place and layer
//   hd, math, half, dtype   functions and number types for every device
//   random                  Philox: random numbers as a pure function of seed, step, site and index
//   arena, storage, shape, tensor   one slab of memory per device; a tensor is a counted slice of it with a shape
//   device, backend, gemm   what differs between devices; gemm is one contract for all
//   device_value            one number or struct in a device's memory, that kernels read and change
//   parallel                the CPU's team of threads
//   into, pack, column_sums what kernels write through, load by, and sum columns with
//   trace                   what a step does, span by span, for a profiler
//   recompute               less is kept for backward, and made again there
//   pinned, step_graph      host memory that a device copies by itself; a step captured once and replayed
//   emulation/              the emulated device: GPU blocks as fibers, queues, graphs, a race detector
//   cuda/                   the GPU: streams, graphs, cuBLASLt
//   safetensors             named tensors as a file
#pragma once
#include "engine/backend.h"
#include "engine/block.h"
#include "engine/check.h"
#include "engine/device.h"
#include "engine/device_value.h"
#include "engine/dtype.h"
#include "engine/gemm.h"
#include "engine/launch.h"
#include "engine/math.h"
#include "engine/random.h"
#include "engine/safetensors.h"
#include "engine/scope.h"
#include "engine/shape.h"
#include "engine/tape.h"
#include "engine/tensor.h"
