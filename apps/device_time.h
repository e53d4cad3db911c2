// How long a device takes, by its own events around the work: a clock of the host that is read without waiting tells
// only how long it took to ask, the same for any size.
#pragma once
#include <functional>
#include <vector>

#include "engine/device.h"

namespace tapedeck {

struct WorkTime {  // seconds
  double asking;   // of the host, until the call returned
  double device;   // from the event ahead of the work to the one behind it
};

// Asks for the work so many times, one behind the other with an event between, and only then waits for all of it.
std::vector<WorkTime> time_work(Device device, int64_t times, const std::function<void()>& work);

}  // namespace tapedeck
