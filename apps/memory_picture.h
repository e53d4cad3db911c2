// The memory of one step as a picture: the most that the device's arena holds during each op, in layers of what it is
// for. What recompute() wins is the layer that a step without it has and one with it has not.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/trace.h"

namespace tapedeck {

struct MemoryLayer {
  const char* name;
  const char* colour;
  std::vector<double> bytes;  // from each moment to the next; what an op gives back within itself is workspace
};
struct MemoryTimeline {
  std::vector<double> seconds;      // of the moments, from the step's begin
  std::vector<MemoryLayer> layers;  // parameters, gradients, optimizer, data, saved, workspace
  struct Part {
    std::string name;
    double begin, end;  // seconds
  };
  std::vector<Part> parts;                             // forward, backward, optimizer …
  std::vector<std::pair<std::string, double>> savers;  // op and the bytes that it saves, the largest first
  size_t peak = 0;                                     // the moment of it
  std::string at_peak;                                 // the op at work there: "linear backward at mlp.hidden0"
  double total(size_t moment) const;
};

struct FixedMemory {  // bytes
  size_t parameters = 0, gradients = 0, optimizer = 0;
  int64_t batch_kept = 0;  // of what tapes keep, the batch itself: it is data
};

// Of the last step in the trace; an empty one where there is none.
MemoryTimeline memory_timeline(const Tracer& tracer, const FixedMemory& fixed);
std::string memory_svg(const MemoryTimeline& timeline, const std::string& title);

}  // namespace tapedeck
