#include "apps/device_time.h"

#include <memory>

#include "apps/meter.h"
#include "engine/backend.h"

namespace tapedeck {

std::vector<WorkTime> time_work(Device device, int64_t times, const std::function<void()>& work) {
  Backend& queues = backend(device);
  std::vector<std::unique_ptr<Event>> events;  // made beforehand: that takes a driver its time
  for (int64_t i = 0; i <= times; ++i) events.push_back(queues.event());
  std::vector<WorkTime> out;
  queues.record(*events[0], Queue::compute);
  for (int64_t i = 0; i < times; ++i) {
    const double begin = steady_seconds();
    work();
    out.push_back({steady_seconds() - begin, 0});
    queues.record(*events[i + 1], Queue::compute);
  }
  queues.wait(*events.back());
  for (int64_t i = 0; i < times; ++i) out[i].device = queues.seconds(*events[i], *events[i + 1]);
  return out;
}

}  // namespace tapedeck
