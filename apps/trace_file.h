// A trace as Chrome's trace events, which ui.perfetto.dev and chrome://tracing show: a line for the thread that is
// traced and one for each that loads beside it, on a device that runs later one for its stream, an arrow from where the
// host asked for an op to where it ran, and the memory in use. Where the device tells of each kernel, these are on the
// lines of its streams, at their times, and the arrows lead from the call that asked for them. Times are microseconds
// with decimals since the first step's begin.
// Format: "Trace Event Format", Google, 2016.
#pragma once
#include <cstddef>
#include <string>

#include "engine/trace.h"

namespace tapedeck {

struct TraceText {
  std::string json;
  size_t left_out = 0;  // events beyond the limit
};
// Strict JSON whatever ranges and ops are called. `limit` bytes, or a little more, are not exceeded.
TraceText trace_text(const Tracer& tracer, const std::string& thread, size_t limit = size_t{256} << 20);

}  // namespace tapedeck
