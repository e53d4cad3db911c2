#include "apps/made_up.h"

#include "engine/random.h"
#include "ops/ops.h"

namespace tapedeck {

Tensor made_up(std::string_view place, const Shape& shape, Device device, DType dtype) {
  Tensor::empty(shape, dtype, device);  // what alone is too large is refused before the host fills up
  std::vector<float> values;
  values.reserve(static_cast<size_t>(shape.count()));
  for (uint64_t block = 0; std::ssize(values) < shape.count(); ++block)
    for (const uint32_t word : random_bits(1, 0, site_of(place), block).word)
      if (std::ssize(values) < shape.count()) values.push_back(2 * uniform01(word) - 1);
  const Tensor single = Tensor::from(values, shape, device);
  return dtype == DType::f32 ? single : cast(single, dtype);
}

}  // namespace tapedeck
