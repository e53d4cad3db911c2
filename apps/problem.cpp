#include "apps/problem.h"

#include <algorithm>
#include <cmath>

#include "data/catalog.h"
#include "data/loader.h"

namespace tapedeck {
namespace {

constexpr int64_t score_batch = 1024;  // examples a forward pass while scoring

// The place of the largest, or -1 where one is NaN: such a row names no class, and counts as wrong.
int64_t argmax(std::span<const double> row) {
  if (std::any_of(row.begin(), row.end(), [](double x) { return std::isnan(x); })) return -1;
  return std::max_element(row.begin(), row.end()) - row.begin();
}

}  // namespace

DataOptions data_options(const Config& config) {
  return {.data_dir = config.data_dir,
          .validation = config.validation,
          .test = config.test,
          .label = config.label,
          .numbers = config.loss == "mse"};
}

Problem::Problem(const Config& config, Device device, DType dtype)
    : data_(load_dataset(config.data, data_options(config))),
      regression_(config.loss == "mse"),
      device_(device),
      dtype_(dtype) {
  if (!regression_ && data_.classes == 0)
    throw UsageError(
        text("--loss cross_entropy needs classes, but {} has numbers to predict: use --loss mse", data_.name));
}

Tensor Problem::to_device(const std::vector<float>& values, const Shape& shape) const {
  if (dtype_ == DType::f64) return Tensor::from(std::vector<double>(values.begin(), values.end()), shape, device_);
  return Tensor::from(values, shape, device_);
}

Inputs Problem::load(std::span<const int32_t> rows) const {
  const int64_t n = std::ssize(rows);
  const Shape x_shape = {n, data_.features};
  std::vector<float> numbers(static_cast<size_t>(regression_ ? n : 0));
  std::vector<int32_t> labels(static_cast<size_t>(regression_ ? 0 : n));
  const auto read = [&](float* x) {
    if (regression_)
      gather(data_, rows, x, numbers.data());
    else
      gather(data_, rows, x, labels.data());
  };
  Inputs inputs;
  if (device_ == Device::cpu && dtype_ == DType::f32) {  // straight to where it is used
    inputs.x = Tensor::empty(x_shape, dtype_, device_);
    read(inputs.x.ptr<float>());
  } else {
    std::vector<float> values(static_cast<size_t>(x_shape.count()));
    read(values.data());
    inputs.x = to_device(values, x_shape);
  }
  inputs.answer = regression_ ? to_device(numbers, {n, 1}) : Tensor::from(labels, {n}, device_);
  return inputs;
}

Inputs Problem::throw_away(int64_t count) const {
  return {Tensor::full({count, data_.features}, dtype_, device_, 0.5),
          regression_ ? Tensor::full({count, 1}, dtype_, device_, 0) : Tensor::full({count}, DType::i32, device_, 0)};
}

Tensor Problem::loss(const Tensor& output, const Inputs& inputs) const {
  return regression_ ? mse(output, inputs.answer) : cross_entropy(output, inputs.answer);
}

Score Problem::score(const Model& model, std::span<const int32_t> rows, const Observer& each) const {
  const NoTape off;
  Score score;
  double loss_sum = 0;
  int64_t right = 0;
  for (const Batch& batch : in_order(rows, score_batch)) {
    const Inputs inputs = load(batch.rows);
    const Tensor output = model(inputs.x);
    const int64_t n = std::ssize(batch.rows);
    loss_sum += loss(output, inputs).item() * static_cast<double>(n);
    score.examples += n;
    if (regression_ && !each) continue;
    const std::vector<double> values = output.doubles();
    if (each) each(batch.rows, values);
    if (regression_) continue;
    for (int64_t i = 0; i < n; ++i)
      right += argmax(std::span(values).subspan(static_cast<size_t>(i * outputs()), static_cast<size_t>(outputs()))) ==
               data_.labels[static_cast<size_t>(batch.rows[static_cast<size_t>(i)])];
  }
  score.loss = loss_sum / static_cast<double>(score.examples);
  if (!regression_) score.accuracy = static_cast<double>(right) / static_cast<double>(score.examples);
  return score;
}

}  // namespace tapedeck
