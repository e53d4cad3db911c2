#include "data/dataset.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "data/checksum.h"
#include "data/loader.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

void gather_features(const Dataset& data, std::span<const int32_t> rows, float* out) {
  CHECK(!data.sequences, "gather: {} has tokens, not numbers; use a model that takes sequences", data.name);
  const int64_t n = data.features;
  if (data.records) return data.records->read(rows, out);
  const float scale = data.pixel_scale;  // a copy, which out cannot alias: else the loop does not vectorise
  for (const int32_t row : rows) {
    CHECK(row >= 0 && row < data.rows(), "gather: row {} of {}, which has rows 0 to {}", row, data.name,
          data.rows() - 1);
    if (data.pixels.empty()) {
      std::copy_n(&data.values[row * n], n, out);
    } else {
      const uint8_t* pixels = &data.pixels[row * n];
      for (int64_t i = 0; i < n; ++i) out[i] = pixels[i] * scale;
    }
    out += n;
  }
}

template <class T>
uint64_t add(uint64_t hash, const std::vector<T>& items) {
  return fnv1a(items.data(), items.size() * sizeof(T), hash);
}

void check_sequences(const Dataset& data) {
  CHECK(data.labels.empty() && data.targets.empty(), "{}: has sequences, whose answers are their own, and {} labels",
        data.name, data.labels.size() + data.targets.size());
  CHECK(data.features >= 1 && data.classes >= 1 && std::ssize(data.encoding.class_names) == data.classes,
        "{}: has sequences of {} tokens, {} different ones, and {} names for them", data.name, data.features,
        data.classes, data.encoding.class_names.size());
  const int64_t asked = data.sequences->answers_each();
  CHECK(asked >= 1 && asked <= data.features, "{}: asks for {} answers in {} tokens", data.name, asked, data.features);
}

}  // namespace

void gather(const Dataset& data, std::span<const int32_t> rows, float* features, int32_t* labels) {
  CHECK(data.classes > 0, "gather: {} has numbers to predict and no classes; use loss mse", data.name);
  gather_features(data, rows, features);
  for (const int32_t row : rows) *labels++ = data.labels[row];
}

void gather(const Dataset& data, std::span<const int32_t> rows, float* features, float* targets) {
  gather_features(data, rows, features);
  for (const int32_t row : rows)
    *targets++ = data.classes > 0 ? static_cast<float>(data.labels[row]) : data.targets[row];
}

void gather(const Dataset& data, std::span<const int32_t> rows, int32_t* tokens, int32_t* answers) {
  CHECK(data.sequences, "gather: {} has numbers, not tokens; use model mlp", data.name);
  data.sequences->read(rows, tokens, answers);
}

std::vector<int32_t> rows_to_score(const Dataset& data, std::string_view part) {
  if (part == "validation") return data.validation;
  if (part == "test") return data.test;
  std::vector<int32_t> every(data.train);
  if (part == "all") {
    every.resize(static_cast<size_t>(data.rows()));
    std::iota(every.begin(), every.end(), 0);
  }
  std::vector<int32_t> rows;
  for (size_t i = 0; i < every.size(); i += static_cast<size_t>(data.stride)) rows.push_back(every[i]);
  return rows;
}

void check_labels(std::span<const int32_t> labels, int classes, std::string_view source) {
  for (size_t row = 0; row < labels.size(); ++row)
    CHECK(labels[row] >= 0 && labels[row] < classes, "{}: label {} at row {}, but there are {} classes (0 to {})",
          source, labels[row], row, classes, classes - 1);
}

void check(const Dataset& data, bool to_train) {
  const auto in_file = data.records ? data.records->count() * data.features : 0;
  const auto numbers = static_cast<int64_t>(data.pixels.size() + data.values.size()) + in_file;
  CHECK(!data.pixels.empty() + !data.values.empty() + (data.records != nullptr) + (data.sequences != nullptr) <= 1,
        "{}: has its features in two places (pixels, values, records, sequences), wants one", data.name);
  CHECK(data.sequences || numbers == data.rows() * data.features,
        "{}: has {} numbers, but {} rows of {} features need {}", data.name, numbers, data.rows(), data.features,
        data.rows() * data.features);
  check_labels(data.labels, data.classes, data.name);
  if (data.sequences) check_sequences(data);
  const Encoding& encoding = data.encoding;
  CHECK(encoding.class_names.empty() || std::ssize(encoding.class_names) == data.classes,
        "{}: has {} names for {} classes", data.name, encoding.class_names.size(), data.classes);
  for (const size_t length : {encoding.columns.size(), encoding.mean.size(), encoding.deviation.size()})
    CHECK(length == 0 || length == static_cast<size_t>(data.features),
          "{}: its encoding has {} entries for {} features", data.name, length, data.features);

  std::vector<bool> seen(data.rows());
  CHECK(!data.tests_on_validation || data.test == data.validation,
        "{}: has no part for testing, but its {} test rows are not the {} that validate", data.name, data.test.size(),
        data.validation.size());
  for (const auto* rows : {&data.train, &data.validation, &data.test}) {
    if (rows == &data.test && data.tests_on_validation) break;
    CHECK(!rows->empty() || !to_train, "{}: a split has no rows (training {}, validation {}, test {} of {})", data.name,
          data.train.size(), data.validation.size(), data.test.size(), data.rows());
    for (const int32_t row : *rows) {
      CHECK(row >= 0 && row < data.rows() && !seen[row], "{}: row {} is in two splits, or outside 0 to {}", data.name,
            row, data.rows() - 1);
      seen[row] = true;
    }
  }
}

int64_t part_of(double fraction, int64_t rows, const char* option) {
  if (!(fraction > 0 && fraction < 1))  // also true for a NaN
    throw UsageError(text("{} {}: must be a fraction of the rows, above 0 and below 1", option, fraction));
  return std::max<int64_t>(1, std::llround(fraction * static_cast<double>(rows)));
}

void split(Dataset& data, int64_t validation_rows, int64_t test_rows, uint64_t seed) {
  CHECK(data.rows() <= std::numeric_limits<int32_t>::max(), "{}: {} rows, but row numbers end at 2^31 - 1", data.name,
        data.rows());
  const int64_t train_rows = data.rows() - validation_rows - test_rows;
  if (validation_rows < 1 || test_rows < 1 || train_rows < 1)
    throw UsageError(text("{}: {} rows leave {} for training after {} for validation and {} for testing; take less",
                          data.name, data.rows(), std::max<int64_t>(0, train_rows), validation_rows, test_rows));
  std::vector<int32_t> rows(data.rows());
  std::iota(rows.begin(), rows.end(), 0);
  const std::vector<int32_t> order = epoch_order(rows, seed, 0);
  const auto validation = order.begin() + train_rows, test = validation + validation_rows;
  data.train.assign(order.begin(), validation);
  data.validation.assign(validation, test);
  data.test.assign(test, order.end());
}

void split_by_content(Dataset& data, const DataOptions& options) {
  const int64_t validation = part_of(options.validation.value_or(0.1), data.rows(), "--validation");
  const int64_t test = part_of(options.test.value_or(0.1), data.rows(), "--test");
  if (!options.encoding || data.rows() > 2) return split(data, validation, test, content_hash(data));
  data.test.resize(static_cast<size_t>(data.rows()));
  std::iota(data.test.begin(), data.test.end(), 0);
}

uint64_t content_hash(const Dataset& data) {
  if (data.sequences) return data.sequences->content_hash();
  uint64_t hash = add(add(fnv1a_of_nothing, data.pixels), data.values);
  if (data.records) hash = add(hash, std::vector{data.records->content_hash()});
  return add(add(hash, data.labels), data.targets);
}

}  // namespace tapedeck
