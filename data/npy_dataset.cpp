// Arrays as data: examples along the first axis, the answers beside them or in the last column.
#include <cmath>

#include "data/encoding.h"
#include "data/npy.h"
#include "data/packed_file.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

// [rows] of the file of answers; a column [rows, 1] counts as such.
std::vector<double> read_answers(const std::string& path, int64_t rows, const std::string& features_path) {
  const Npy array = read_npy(path);
  CHECK(array.shape.size() == 1 || (array.shape.size() == 2 && array.shape[1] == 1),
        "{}: holds an array of {} axes, wants one answer for each example: an array of one axis", path,
        array.shape.size());
  CHECK(array.count() == rows, "{} examples in {}, but {} answers in {}: files of different sets?", rows, features_path,
        array.count(), path);
  std::vector<double> answers;
  for (int64_t i = 0; i < rows; ++i) answers.push_back(array.at(i));
  return answers;
}

}  // namespace

Dataset load_npy(const std::string& path, const DataOptions& options) {
  const Npy array = read_npy(path);
  const bool last_column = options.label.empty();
  if (last_column && (array.shape.size() != 2 || array.shape[1] < 2))
    throw UsageError(
        text("npy:{}: say with --label FILE where the answers are; only an array of two axes, and two "
             "columns at least, can have them in its last column",
             path));
  CHECK(!array.shape.empty(), "{}: holds a single number, wants an array of examples", path);
  const int64_t rows = array.shape[0], width = array.count() / rows, features = width - last_column;
  Dataset data{.name = data_name(path), .features = features};
  for (size_t axis = 1; axis < array.shape.size() && !last_column; ++axis)
    data.shape += (axis > 1 ? "x" : "") + std::to_string(array.shape[axis]);
  if (data.shape.empty()) data.shape = std::to_string(features);

  const bool are_pixels = array.descr == "|u1";
  std::vector<double> answers;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < features; ++column) {
      const int64_t i = row * width + column;
      if (are_pixels) {
        data.pixels.push_back(array.bytes[static_cast<size_t>(i)]);
        continue;
      }
      data.values.push_back(static_cast<float>(array.at(i)));
      CHECK(std::isfinite(data.values.back()), "{}: row {}, column {}: {} is no finite number of a float's range", path,
            row, column, array.at(i));
    }
    if (last_column) answers.push_back(array.at(row * width + features));
  }
  if (are_pixels) data.pixel_scale = 1.0f / 255;

  if (!last_column) answers = read_answers(options.label, rows, path);
  take_answers(data, answers, options, last_column ? path : options.label);
  split_by_content(data, options);
  check(data, !options.encoding);
  return data;
}

}  // namespace tapedeck
