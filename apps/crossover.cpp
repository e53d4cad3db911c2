#include "apps/crossover.h"

namespace tapedeck {

std::optional<int64_t> faster_from(std::span<const SizeRatio> sizes) {
  std::optional<int64_t> from;
  for (const auto& [size, over] : sizes) {
    const bool faster = over && over->high < 1;
    if (!faster) from.reset();
    if (faster && !from) from = size;
  }
  return from;
}

}  // namespace tapedeck
