// The tracer where the device tells of each kernel: a moment's place in the device's time is then how long the device
// has worked on what was asked for until then, so that a span's time is that of its kernels. What is left of a step is
// the time in which nothing ran; it is kept by the host's clock, so that what the host did meanwhile is known.
#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/trace.h"

namespace tapedeck {
namespace {

int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

}  // namespace

void Tracer::record_kernels(KernelRecorder* recorder) { recorder_ = recorder; }

void Tracer::take_kernels() {
  if (!recorder_) return;
  std::vector<KernelRecord> taken = recorder_->take();
  join_replays(taken, std::exchange(replays_, {}));
  const size_t room = limit_ - std::min(limit_, kernels_.size());
  kernels_.insert(kernels_.end(), taken.begin(), taken.begin() + static_cast<int64_t>(std::min(room, taken.size())));
  kernels_until_.push_back(kernels_.size());
  full_ = full_ || taken.size() > room;
}

int32_t Tracer::moment_of(const KernelRecord& kernel) const {
  if (kernel.mark == 0) return -1;
  const auto found = std::lower_bound(moments_.begin(), moments_.end(), kernel.mark,
                                      [](const TraceMoment& m, uint64_t mark) { return m.mark < mark; });
  return found != moments_.end() && found->mark == kernel.mark ? static_cast<int32_t>(found - moments_.begin()) : -1;
}

void Tracer::finish_by_kernels() {
  double worked = 0, idle = 0;
  of_nobody_ = 0;
  size_t steps = 0, kernel = 0;
  for (const Span& step : spans_) {
    if (step.parent >= 0) continue;
    const size_t first = static_cast<size_t>(step.begin), last = static_cast<size_t>(step.end);
    int64_t begin = nanoseconds(moments_[first].host), end = nanoseconds(moments_[last].host);
    std::vector<DeviceWork> works;
    for (const size_t until = steps < kernels_until_.size() ? kernels_until_[steps++] : kernel; kernel < until;
         ++kernel) {
      const KernelRecord& k = kernels_[kernel];
      const int32_t moment = moment_of(k);
      if (moment >= 0 && (moment < step.begin || moment >= step.end)) continue;
      works.push_back({k.begin, k.end, moment < 0 ? -1 : moment - step.begin, k.kind == KernelRecord::Kind::kernel});
      if (moment < 0) continue;  // it may belong to another time
      begin = std::min(begin, k.begin), end = std::max(end, k.end);
    }
    const Shares shares = share_out(works, begin, end, last - first);
    of_nobody_ += 1e-9 * static_cast<double>(shares.of_nobody);
    size_t gap = 0;
    for (size_t i = first; i <= last; ++i) {
      if (i > first) worked += 1e-9 * static_cast<double>(shares.of_owner[i - 1 - first]);
      const int64_t now = i == last ? end : nanoseconds(moments_[i].host);
      for (; gap < shares.gaps.size() && shares.gaps[gap].second <= now; ++gap)
        idle += 1e-9 * static_cast<double>(shares.gaps[gap].second - shares.gaps[gap].first);
      const bool within = gap < shares.gaps.size() && shares.gaps[gap].first < now;
      moments_[i].device = worked;
      moments_[i].idle = idle + (within ? 1e-9 * static_cast<double>(now - shares.gaps[gap].first) : 0);
    }
  }
}

double Tracer::idle_seconds(const Span& span) const {
  return moments_[static_cast<size_t>(span.end)].idle - moments_[static_cast<size_t>(span.begin)].idle;
}

}  // namespace tapedeck
