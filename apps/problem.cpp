#include "apps/problem.h"

#include <algorithm>
#include <cmath>

#include "data/catalog.h"
#include "data/loader.h"

namespace tapedeck {
namespace {

static_assert(ignored_label == Sequences::no_answer);

constexpr int64_t score_batch = 1024;  // examples a forward pass while scoring, or a few thousand tokens
constexpr int64_t score_tokens = 4096;

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
          .context = config.context,
          .bytes = config.bytes,
          .regression = config.loss == "mse"};
}

Problem::Problem(const Config& config, Device device, DType dtype)
    : Problem(load_dataset(config.data, data_options(config)), config.loss == "mse", device, dtype) {
  if (sequences() == (config.model == "gpt")) return;
  const char* const learns[] = {"features", "sequences"};
  throw UsageError(text("--model {}: learns from {}, and {} holds {}: use --model {}", config.model,
                        learns[!sequences()], data_.name, learns[sequences()], sequences() ? "gpt" : "mlp"));
}

Problem::Problem(Dataset data, bool regression, Device device, DType dtype)
    : data_(std::move(data)), regression_(regression), device_(device), dtype_(dtype) {
  if (!regression_ && data_.classes == 0)
    throw UsageError(
        text("--loss cross_entropy needs classes, but {} has numbers to predict: use --loss mse", data_.name));
}

Inputs Problem::memory(Shape examples, DType dtype, Device device) const {
  if (sequences()) return {Tensor::empty(examples, DType::i32, device), Tensor::empty(examples, DType::i32, device)};
  const int64_t count = examples[0];
  return {Tensor::empty(examples, dtype, device),
          regression_ ? Tensor::empty({count, 1}, sums_of(dtype), device) : Tensor::empty({count}, DType::i32, device)};
}
Inputs Problem::empty_stored(int64_t count, Device device) const {
  return memory({count, data_.features}, DType::f32, device);
}
Inputs Problem::empty(int64_t count) const { return memory({count, data_.features}, dtype_, device_); }

Inputs Problem::converted(const Inputs& stored) const {
  const auto as = [&](DType dtype, const Tensor& x) { return x.dtype == DType::i32 ? x : cast(x, dtype); };
  return {as(dtype_, stored.x), as(sums_of(dtype_), stored.answer)};
}

void Problem::gather_rows(std::span<const int32_t> rows, void* x, void* answer) const {
  if (sequences())
    data_.sequences->read(rows, static_cast<int32_t*>(x), static_cast<int32_t*>(answer));
  else if (regression_)
    gather(data_, rows, static_cast<float*>(x), static_cast<float*>(answer));
  else
    gather(data_, rows, static_cast<float*>(x), static_cast<int32_t*>(answer));
}

Inputs Problem::load(std::span<const int32_t> rows) const {
  const Inputs host = empty_stored(std::ssize(rows), Device::cpu);
  gather_rows(rows, host.x.data.begin(), host.answer.data.begin());
  return converted({host.x.to(device_), host.answer.to(device_)});
}

Inputs Problem::throw_away(int64_t count, int64_t features) const {
  const Inputs inputs = memory({count, features}, dtype_, device_);
  fill(inputs.x, sequences() ? 0 : 0.5);
  fill(inputs.answer, 0);
  return inputs;
}

Tensor Problem::loss(const Tensor& output, const Inputs& inputs) const {
  if (regression_) return mse(cast(output, inputs.answer.dtype), inputs.answer);  // numbers to predict stay as they are
  if (!sequences()) return cross_entropy(output, inputs.answer);
  const int64_t tokens = inputs.answer.count();
  return cross_entropy(reshape(output, {tokens, outputs()}), reshape(inputs.answer, {tokens}));
}

int64_t Problem::right(std::span<const double> outputs, std::span<const int32_t> answers) const {
  int64_t right = 0, asked = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i] == ignored_label) continue;
    ++asked;
    const size_t classes = outputs.size() / answers.size();
    right += argmax(outputs.subspan(i * classes, classes)) == answers[i];
  }
  return data_.whole_examples ? right == asked : right;
}

int64_t Problem::examples_a_pass() const {
  return sequences() ? std::max<int64_t>(1, score_tokens / data_.features) : score_batch;
}

Score Problem::score(const Model& model, std::span<const int32_t> rows, const Observer& each) const {
  const NoTape off;
  Score score;
  double loss_sum = 0;
  int64_t right_answers = 0;
  const auto one_pass = [&](std::span<const int32_t> batch) {
    const Inputs inputs = load(batch);
    const Tensor output = model(inputs.x);
    const double mean_loss = loss(output, inputs).item();
    const std::vector<double> values = regression_ && !each ? std::vector<double>() : output.doubles();
    loss_sum += mean_loss * static_cast<double>(batch.size());  // from here on nothing asks for memory of the device
    score.examples += std::ssize(batch);
    if (each) each(batch, values);
    if (regression_) return;
    const std::vector<int32_t> right_ones = inputs.answer.values<int32_t>();
    const size_t asked = static_cast<size_t>(answers()), numbers = asked * static_cast<size_t>(outputs());
    for (size_t i = 0; i < batch.size(); ++i)
      right_answers +=
          right(std::span(values).subspan(i * numbers, numbers), std::span(right_ones).subspan(i * asked, asked));
  };
  auto step = static_cast<size_t>(examples_a_pass());
  while (!rows.empty()) try {
      one_pass(rows.first(std::min(step, rows.size())));
      rows = rows.subspan(std::min(step, rows.size()));
    } catch (const OutOfMemory&) {  // a run that could train can be scored, in smaller pieces
      if (step == 1) throw;
      step /= 2;
    }
  score.loss = loss_sum / static_cast<double>(score.examples);
  const int64_t of_one = sequences() && !data_.whole_examples ? data_.sequences->answers_each() : 1;
  if (!regression_) score.accuracy = static_cast<double>(right_answers) / static_cast<double>(score.examples * of_one);
  return score;
}

Inputs first_rows(const Inputs& batch, int64_t n) { return {first_rows(batch.x, n), first_rows(batch.answer, n)}; }

BatchBuffer::BatchBuffer(const Problem& problem, int64_t capacity) : problem_(problem), capacity_(capacity) {
  if (problem.device() == Device::cpu) {
    host_ = problem.empty_stored(capacity, Device::cpu);
    x_ = host_.x.data.begin();
    answer_ = host_.answer.data.begin();
  } else {  // every number takes 4 bytes
    const size_t numbers = static_cast<size_t>(capacity * problem.data().features);
    pinned_.emplace(problem.device(), 4 * (numbers + static_cast<size_t>(capacity * problem.answers())));
    x_ = pinned_->begin();
    answer_ = static_cast<float*>(pinned_->begin()) + numbers;
  }
}

void BatchBuffer::load(std::span<const int32_t> rows) {
  CHECK(std::ssize(rows) <= capacity_, "batch: {} examples do not fit into memory for {}", rows.size(), capacity_);
  problem_.gather_rows(rows, x_, answer_);
  count_ = std::ssize(rows);
}

Inputs BatchBuffer::inputs() const { return problem_.converted(first_rows(host_, count_)); }

}  // namespace tapedeck
