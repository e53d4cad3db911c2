// parallel_ranges: a loop cut into one range a thread, run by a team of threads of our own.
//
// Not OpenMP's: its barrier waits for every thread of the team, also for one that has not begun since another program
// took its core, and its threads spin away the time they would need later. Here a range belongs to whoever claims it
// first, so the caller goes on alone when nobody comes, and waiting threads spin for some microseconds and then sleep.
// On two cores that ten other programs wanted too, an MLP step took 196 ms under OpenMP, 17 ms on one thread. With one
// of two cores taken this team takes twice the time of an idle machine (BENCHMARKS.md).
#pragma once
#include <algorithm>
#include <cstdint>

#include "engine/device.h"

namespace tapedeck {
namespace detail {
// Calls part(work, i) once for every i < parts, on this thread and the team's, and returns when all have finished.
// Throws what the first failing part threw, after the others have run. Inside of a part, or while another thread's call
// runs, all run on this thread.
void run_parts(int64_t parts, void (*part)(const void* work, int64_t index), const void* work);
}  // namespace detail

// f(begin, end) over ranges that cover 0…n, one a thread; one range where there is less than `grain` work for each. The
// ranges depend on n and the thread count only, so results do not depend on who ran which.
template <class F>
void parallel_ranges(int64_t n, int64_t grain, const F& f) {
  struct Work {
    const F& f;
    int64_t n, parts;
  };
  const Work work{f, n, std::min<int64_t>(threads(), n / std::max<int64_t>(grain, 1))};
  if (work.parts > 1)
    detail::run_parts(
        work.parts,
        [](const void* of_caller, int64_t i) {
          const Work& w = *static_cast<const Work*>(of_caller);
          w.f(w.n * i / w.parts, w.n * (i + 1) / w.parts);
        },
        &work);
  else if (n > 0)
    f(int64_t{0}, n);
}

}  // namespace tapedeck
