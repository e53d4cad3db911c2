#include "apps/profile_session.h"

#include "engine/backend.h"

namespace tapedeck {

ProfileSession::ProfileSession(const ProfileWindow& window, Device device, Tracer::Clock clock, size_t limit)
    : window_(window), device_(device), tracer_(device, clock, limit), warming_(device, clock, limit) {}

void ProfileSession::begins(int64_t step) {
  const ProfileWindow::Part part = window_.part(step);
  if (part == ProfileWindow::Part::outside) return;
  backend(device_).sync();  // what was asked for before is no part of this step
  if (device_ == Device::emulated) logical_.emplace(emulation::streams());  // the run's own steps have real times
  Tracer& tracer = part == ProfileWindow::Part::active ? tracer_ : warming_;
  spans_before_ = tracer.spans().size(), moments_before_ = tracer.moments().size();
  on_.emplace(tracer);
  tracer.open(Span::Kind::range, "step");
}

void ProfileSession::ends(int64_t step) {
  next_ = step + 1;
  if (!on_) return;
  Tracer& tracer = *Tracer::current();
  tracer.close();
  on_.reset();
  backend(device_).sync();  // and what is asked for next finds the device idle, as the step did
  logical_.reset();
  full_ = tracer.full();
  if (full_)
    tracer.clear(spans_before_, moments_before_);  // part of a step
  else if (&tracer == &tracer_)
    steps_.push_back(step);
  else
    tracer.clear();
}

void ProfileSession::finish() {
  if (on_) {
    Tracer& tracer = *Tracer::current();
    tracer.close_all();
    on_.reset();
    logical_.reset();
    tracer.clear(spans_before_, moments_before_);
  }
  tracer_.finish();
}

}  // namespace tapedeck
