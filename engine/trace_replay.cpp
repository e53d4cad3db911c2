// A replayed graph in a trace: the spans of the step that was captured, at the times of the kernels that this replay
// ran. The host asks for all of it at once, so its own clock tells nothing of what lies within.
#include "engine/trace.h"

namespace tapedeck {
namespace {

struct Closing {
  Tracer& tracer;
  ~Closing() { tracer.close(); }
};

}  // namespace

void Tracer::replay(const Tracer& captured, const std::function<void()>& launch) {
  if (!recorder_) return launch();
  open(Span::Kind::range, "replay");
  const Closing closing{*this};
  launch();
  add_replayed(captured);
}

// Moment i of the captured step is moment begin + i here, with a mark of its own; the last is the one that will close
// the range. Before them lies the moment that it was opened at: what runs of no node that is known has its mark, so
// that it is in the range and in no op.
void Tracer::add_replayed(const Tracer& captured) {
  const Frame& frame = frames_.back();
  if (frame.mark < 0 || captured.spans_.empty()) return;
  full_ = full_ || captured.full_ || spans_.size() + captured.spans_.size() > limit_;
  if (full_) return;
  const int32_t begin = frame.mark + 1, root = frame.span;
  const TraceMoment asked = moments_[static_cast<size_t>(frame.mark)];
  Replay replay{asked.mark, {}, {}};
  for (size_t i = 0; i + 1 < captured.moments_.size(); ++i) {
    const TraceMoment& then = captured.moments_[i];
    const uint64_t mark = recorder_->reserve();
    replay.captured.push_back(then.mark);
    replay.own.push_back(mark);
    moments_.push_back(
        {.host = asked.host, .bytes = then.bytes, .peak = then.peak, .saved = asked.saved + then.saved, .mark = mark});
  }
  replays_.push_back(std::move(replay));
  const int32_t behind_root = static_cast<int32_t>(spans_.size()) - 1;  // the captured root is its span 0
  for (size_t i = 1; i < captured.spans_.size(); ++i) {
    Span span = captured.spans_[i];
    span.name = intern(captured.text(span.name));
    span.where = intern(captured.text(span.where));
    span.parent = span.parent <= 0 ? root : behind_root + span.parent;
    span.begin += begin, span.end += begin;
    span.replayed = true;
    spans_.push_back(span);
  }
}

}  // namespace tapedeck
