// Profiling steps that are replayed as a graph: whether what tells of kernels tells whose each was, and how many steps
// of a trace were no replays.
#pragma once
#include <cstdint>
#include <string>

#include "engine/kernel_times.h"
#include "engine/trace.h"

namespace tapedeck {

// Captures and replays two ops, each of whose kernels must come back as its own. "": they did; else what went wrong.
std::string failed_graph_trial(KernelRecorder& recorder, Device device);

// Steps of a trace with ops that ran plainly, or during which a graph was captured.
int64_t steps_not_replayed(const Tracer& tracer);

// So many steps of a run replay no graph: in the memory of each batch on the device the first one runs plainly, and the
// second is captured.
int64_t steps_before_replays();

}  // namespace tapedeck
