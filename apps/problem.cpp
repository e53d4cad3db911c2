#include "apps/problem.h"

#include <algorithm>
#include <cmath>

#include "data/catalog.h"
#include "data/loader.h"

namespace tapedeck {
namespace {

constexpr int64_t score_batch = 1024;  // examples a forward pass while scoring

Tensor first_rows(const Tensor& x, int64_t n) {
  Tensor part = x;
  part.shape = x.rank() == 1 ? Shape{n} : Shape{n, x.cols()};
  part.data = x.data.slice(0, part.bytes());
  return part;
}

}  // namespace

int64_t argmax(std::span<const double> logits) {
  if (std::any_of(logits.begin(), logits.end(), [](double x) { return std::isnan(x); })) return -1;
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

DataOptions data_options(const Config& config) {
  return {.data_dir = config.data_dir,
          .validation = config.validation,
          .test = config.test,
          .label = config.label,
          .regression = config.loss == "mse"};
}

Problem::Problem(const Config& config, Device device, DType dtype)
    : Problem(load_dataset(config.data, data_options(config)), config.loss == "mse", device, dtype) {}

Problem::Problem(Dataset data, bool regression, Device device, DType dtype)
    : data_(std::move(data)), regression_(regression), device_(device), dtype_(dtype) {
  if (!regression_ && data_.classes == 0)
    throw UsageError(
        text("--loss cross_entropy needs classes, but {} has numbers to predict: use --loss mse", data_.name));
}

Inputs Problem::empty_f32(int64_t count, Device device) const {
  return {Tensor::empty({count, data_.features}, DType::f32, device),
          regression_ ? Tensor::empty({count, 1}, DType::f32, device) : Tensor::empty({count}, DType::i32, device)};
}

Inputs Problem::empty(int64_t count) const {
  return {Tensor::empty({count, data_.features}, dtype_, device_),
          regression_ ? Tensor::empty({count, 1}, dtype_, device_) : Tensor::empty({count}, DType::i32, device_)};
}

Inputs Problem::converted(const Inputs& stored) const {
  return {cast(stored.x, dtype_), regression_ ? cast(stored.answer, dtype_) : stored.answer};
}

void Problem::gather_rows(std::span<const int32_t> rows, float* x, void* answer) const {
  if (regression_)
    gather(data_, rows, x, static_cast<float*>(answer));
  else
    gather(data_, rows, x, static_cast<int32_t*>(answer));
}

Inputs Problem::load(std::span<const int32_t> rows) const {
  const Inputs host = empty_f32(std::ssize(rows), Device::cpu);
  gather_rows(rows, host.x.ptr<float>(), host.answer.data.begin());
  return converted({host.x.to(device_), host.answer.to(device_)});
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
  for (const auto batch : in_order(rows, score_batch)) {
    const Inputs inputs = load(batch);
    const Tensor output = model(inputs.x);
    const int64_t n = std::ssize(batch);
    loss_sum += loss(output, inputs).item() * static_cast<double>(n);
    score.examples += n;
    if (regression_ && !each) continue;
    const std::vector<double> values = output.doubles();
    if (each) each(batch, values);
    if (regression_) continue;
    for (int64_t i = 0; i < n; ++i)
      right += argmax(std::span(values).subspan(static_cast<size_t>(i * outputs()), static_cast<size_t>(outputs()))) ==
               data_.labels[static_cast<size_t>(batch[static_cast<size_t>(i)])];
  }
  score.loss = loss_sum / static_cast<double>(score.examples);
  if (!regression_) score.accuracy = static_cast<double>(right) / static_cast<double>(score.examples);
  return score;
}

Inputs first_rows(const Inputs& batch, int64_t n) { return {first_rows(batch.x, n), first_rows(batch.answer, n)}; }

BatchBuffer::BatchBuffer(const Problem& problem, int64_t capacity) : problem_(problem), capacity_(capacity) {
  if (problem.device() == Device::cpu) {
    host_ = problem.empty_f32(capacity, Device::cpu);
    x_ = host_.x.ptr<float>();
    answer_ = host_.answer.data.begin();
  } else {
    const size_t numbers = static_cast<size_t>(capacity * problem.data().features);
    pinned_.emplace(problem.device(), numbers * sizeof(float) + static_cast<size_t>(capacity) * sizeof(int32_t));
    x_ = static_cast<float*>(pinned_->begin());
    answer_ = x_ + numbers;
  }
}

void BatchBuffer::load(std::span<const int32_t> rows) {
  CHECK(std::ssize(rows) <= capacity_, "batch: {} examples do not fit into memory for {}", rows.size(), capacity_);
  problem_.gather_rows(rows, x_, answer_);
  count_ = std::ssize(rows);
}

Inputs BatchBuffer::inputs() const { return problem_.converted(first_rows(host_, count_)); }

}  // namespace tapedeck
