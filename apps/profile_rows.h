// What a trace comes to: a row for each op and each range. Times are of the device.
//
//   roof     the least time that the machine's measured peaks allow: max(FLOP / gemm peak, bytes / copy peak)
//            [Williams et al. 2009]; the larger term says what bounds the op
//   at most  how much faster the step were if the op took no time: 1 / (1 − share)   [Amdahl 1967]
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/config.h"
#include "apps/peaks.h"
#include "engine/trace.h"

namespace tapedeck {

struct OpRow {  // sums over all steps of the trace
  std::string name;
  Way way = Way::none;
  int64_t calls = 0;
  double own = 0, total = 0;    // seconds; total: with what ran inside it, itself again counted once
  double flops = 0, bytes = 0;  // counted, of its own time
  int64_t saved = 0;            // bytes for backward
  size_t peak = 0;              // the most bytes that the arena held while it ran: in one call, not a sum
  double share = 0;             // of the wall time
  std::string label() const;    // "gemm backward"

  double gflops() const { return own > 0 ? flops / own / 1e9 : 0; }
  double gb_per_s() const { return own > 0 ? bytes / own / 1e9 : 0; }
  double at_most() const { return 1 / (1 - share); }
  // Where something was counted and the peaks are known: of what the roof allows, the share that it reaches.
  bool memory_bound(const Peaks& peaks) const { return bytes * peaks.gemm.best > flops * peaks.copy.best; }
  std::optional<double> of_roof(const std::optional<Peaks>& peaks) const;
};

struct RangeRow {
  std::string name;  // "mlp.hidden0"
  int64_t calls = 0;
  double own = 0, total = 0;  // own: in no op; what "data" does itself counts as an op
  double forward = 0, backward = 0, again = 0;
  double flops = 0, bytes = 0;
  double roof = 0, memory_roof = 0;  // seconds that its spans take at least, where the peaks are known; bound by memory
  int64_t saved = 0;
  double share = 0;

  bool memory_bound() const { return memory_roof > roof / 2; }  // for most of the least time
  std::optional<double> of_roof() const;
};

struct Profile {
  bool logical = false;  // times are of a logical clock: no speed follows from them
  int64_t steps = 0;
  double wall = 0;          // seconds of these steps
  double between = 0;       // of these in no op: what is left
  bool replayed = false;    // some of its steps are replays of a graph
  bool by_kernels = false;  // an op's time is that of its kernels, and
  double idle = 0;          // seconds in which nothing ran, but for those in which the host waited for data
  std::vector<OpRow> ops;
  std::vector<RangeRow> ranges;  // as they were met
};
Profile profile_of(const Tracer& tracer, const std::optional<Peaks>& peaks = {});  // after finish()

// "self", "total", "calls", "flops", "bytes", "saved", "name": the largest first. A range does next to nothing but what
// its ops do: by "self", ranges are sorted by their total.
void sort_rows(Profile& profile, const std::string& by);
// FLOP that an element of an op counts as, where it is no product: 0 for what only moves.
double flops_per_element(std::string_view op, Way way);
double flops_of(const Tracer& tracer, const Span& span);  // counted, or by its elements where it moves any

}  // namespace tapedeck
