#include "apps/steps_in_flight.h"

#include <cmath>
#include <utility>

#include "engine/check.h"

namespace tapedeck {

StepsInFlight::StepsInFlight(Device device)
    : device_(device), backend_(backend(device)), memory_(device, ring * sizeof(StepRecord)) {
  for (int64_t i = 0; i < ring; ++i) records()[i] = {};
}

double StepsInFlight::Finished::loss() const { return std::isnan(record.loss) ? NAN : record.loss; }

std::shared_ptr<Event> StepsInFlight::now() const {
  std::shared_ptr<Event> event = backend_.event();
  backend_.record(*event, Queue::compute);
  return event;
}

// While we are ahead of the device a step begins where the one before ends: what lies between belongs to it.
void StepsInFlight::begin() { began_ = steps_.empty() ? now() : steps_.back().done; }

double StepsInFlight::seconds_so_far() const {
  const std::shared_ptr<Event> until = now();
  backend_.wait(*until);
  return backend_.seconds(*began_, *until);
}

void StepsInFlight::asked(const Asked& step) {
  CHECK(size() < ring, "steps in flight: {} of them, and the ring holds {}", size() + 1, ring);
  steps_.push_back({step, std::exchange(began_, nullptr), now()});
}

StepsInFlight::Finished StepsInFlight::next() {
  const Step step = std::move(steps_.front());
  steps_.pop_front();
  backend_.wait(*step.done);
  Finished finished{step.asked, records()[step.asked.step % ring]};
  CHECK(finished.record.step == step.asked.step, "step {}: its place in the ring holds the record of step {}",
        step.asked.step, finished.record.step);
  finished.seconds += backend_.seconds(*step.began, *step.done);
  return finished;
}

}  // namespace tapedeck
