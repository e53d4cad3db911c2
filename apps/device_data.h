// DeviceData: a data set that lives in the device's memory, whose batches are gathered there. Nothing crosses the bus
// in a step, and a captured step finds its next batch by itself.
#pragma once
#include <vector>

#include "apps/problem.h"
#include "ops/gather.h"

namespace tapedeck {

class DeviceData {
 public:
  // Whether the features are in memory and take no more than a quarter of what the device may use.
  static bool fits(const Problem& problem);

  static size_t bytes(const Problem& problem);  // of the device's memory

  // `cursor`, in the device's memory: examples given so far, of which an epoch gives so many. Copies features and
  // answers to the device.
  DeviceData(const Problem& problem, const int64_t* cursor, int64_t epoch);

  void use_order(const std::vector<int32_t>& order);  // of the epoch that begins: as many rows as the training split
  Inputs batch(int64_t count) const;                  // the next `count` rows of it; does not move the cursor

 private:
  const Problem& problem_;
  Storage features_, answers_, order_;
  RowList list_;
};

}  // namespace tapedeck
