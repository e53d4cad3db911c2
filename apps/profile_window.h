// Which steps of a run are profiled:  skip | wait, warmup, active | wait, warmup, active | …  `repeat` times. The
// tracer is on while it warms up as well, so that what its first spans cost is not in the active ones.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tapedeck {

struct ProfileWindow {
  enum class Part : uint8_t { outside, warmup, active };
  int64_t skip = 0, wait = 1, warmup = 1, active = 3, repeat = 1;

  int64_t cycle() const { return wait + warmup + active; }
  int64_t end() const { return skip + repeat * cycle(); }  // the run needs so many steps
  Part part(int64_t step) const;                           // steps count from 0
};

// "skip=0,wait=1,warmup=1,active=3,repeat=1": what is left out keeps its default. Throws UsageError.
ProfileWindow parse_window(std::string_view text);
std::string to_text(const ProfileWindow& window);

}  // namespace tapedeck
