#include "apps/device_data.h"

#include <algorithm>

#include "engine/backend.h"

namespace tapedeck {
namespace {

template <class T>
Storage put(Device device, const std::vector<T>& values) {
  Storage there(device, values.size() * sizeof(T));
  backend(device).copy(there.begin(), values.data(), there.bytes());
  return there;
}

size_t feature_bytes(const Dataset& data) {
  return data.pixels.empty() ? data.values.size() * sizeof(float) : data.pixels.size();
}

}  // namespace

bool DeviceData::fits(const Problem& problem) {
  const Dataset& data = problem.data();
  return problem.device() != Device::cpu && !data.records && !data.sequences &&
         feature_bytes(data) <= backend(problem.device()).arena().limit() / 4;
}

size_t DeviceData::bytes(const Problem& problem) {
  const Dataset& data = problem.data();
  const size_t rows = std::max(data.labels.size(), data.targets.size());
  return feature_bytes(data) + rows * sizeof(float) + data.train.size() * sizeof(int32_t);
}

DeviceData::DeviceData(const Problem& problem, const int64_t* cursor, int64_t epoch) : problem_(problem) {
  const Dataset& data = problem.data();
  const Device device = problem.device();
  features_ = data.pixels.empty() ? put(device, data.values) : put(device, data.pixels);
  if (problem.regression() && data.classes > 0)  // the class id is the number to predict
    answers_ = put(device, std::vector<float>(data.labels.begin(), data.labels.end()));
  else
    answers_ = problem.regression() ? put(device, data.targets) : put(device, data.labels);
  order_ = Storage(device, data.train.size() * sizeof(int32_t));
  list_ = {static_cast<const int32_t*>(order_.begin()), epoch, cursor};
}

void DeviceData::use_order(const std::vector<int32_t>& order) {
  CHECK(order.size() * sizeof(int32_t) == order_.bytes(), "device data: an order of {} rows for {} training examples",
        order.size(), order_.bytes() / sizeof(int32_t));
  backend(problem_.device()).copy(order_.begin(), order.data(), order_.bytes());
}

Inputs DeviceData::batch(int64_t count) const {
  const Dataset& data = problem_.data();
  const Inputs out = problem_.empty(count);
  if (data.pixels.empty())
    gather(out.x, static_cast<const float*>(features_.begin()), list_);
  else
    gather(out.x, static_cast<const uint8_t*>(features_.begin()), data.pixel_scale, list_);
  if (problem_.regression())
    gather(out.answer, static_cast<const float*>(answers_.begin()), list_);
  else
    gather(out.answer, static_cast<const int32_t*>(answers_.begin()), list_);
  return out;
}

}  // namespace tapedeck
