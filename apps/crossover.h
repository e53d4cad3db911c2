// From which size on one device is faster than another.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "apps/stats.h"

namespace tapedeck {

struct SizeRatio {
  int64_t size;
  std::optional<RatioInterval> over;  // its time over the other's; none: not measured, or from one round
};

// The smallest size such that there and at every larger one the interval of the ratio lies below 1; none where the
// largest is not shown to be faster. Needs sizes in rising order.
std::optional<int64_t> faster_from(std::span<const SizeRatio> sizes);

}  // namespace tapedeck
