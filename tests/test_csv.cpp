// CSV files as data sets: classes, numbers to predict, standardised features, and the encoding of a model.
#include "data/csv.h"

#include <array>
#include <cmath>

#include "data/catalog.h"
#include "data/csv_table.h"
#include "data/digits.h"
#include "data/encoding.h"
#include "engine/check.h"
#undef CHECK  // below, CHECK is doctest's
#include <doctest/doctest.h>

#include "tests/idx_bytes.h"
#include "tests/test_data_folder.h"

using namespace tapedeck;
using doctest::Contains;
using Strings = std::vector<std::string>;

namespace {

struct File {
  TemporaryFolder folder;
  std::string path;
  explicit File(const std::string& content) : path(folder.write("t.csv", text_bytes(content))) {}
};

Dataset load(const std::string& content, const DataOptions& options = {}) {
  return load_csv(File(content).path, options);
}

void refuses(const std::string& content, const char* message, const DataOptions& options = {}) {
  CHECK_THROWS_WITH_AS(load(content, options), Contains(message), Error);
}

// "x,y,class" and n rows x = i, y = i²; classes in turn.
std::string rows(int n, const Strings& classes, const char* header = "x,y,class\n") {
  std::string content = header;
  for (int i = 0; i < n; ++i)
    content += std::to_string(i) + "," + std::to_string(i * i) + "," + classes[i % classes.size()] + "\n";
  return content;
}

// A feature as it stands in the file.
double raw(const Dataset& data, int64_t row, int64_t column) {
  const auto c = static_cast<size_t>(column);
  return data.values[row * data.features + column] * data.encoding.deviation[c] + data.encoding.mean[c];
}

}  // namespace

TEST_CASE("csv: classes are the different answers, whole numbers in their order and words by their bytes") {
  const Dataset numbers = load(rows(12, {"10", "9", "-2"}));
  CHECK(numbers.name == "t");
  CHECK(numbers.features == 2);
  CHECK(numbers.classes == 3);
  CHECK(numbers.encoding.class_names == Strings{"-2", "9", "10"});
  CHECK(numbers.encoding.columns == Strings{"x", "y"});
  CHECK(std::vector(numbers.labels.begin(), numbers.labels.begin() + 4) == std::vector<int32_t>{2, 1, 0, 2});

  CHECK(load(rows(12, {"1", "0.0", " 01", "\"1.0\"", "-0"})).encoding.class_names == Strings{"0", "1"});
  const Dataset words = load(rows(12, {"setosa", "Virginica", "\"a, b\"", "10", "nan"}));
  CHECK(words.encoding.class_names == Strings{"10", "Virginica", "a, b", "nan", "setosa"});
  CHECK(words.labels[0] == 4);
  CHECK(load(rows(12, {"b", "a"}, "")).encoding.columns.empty());
}

TEST_CASE("csv: answers that make no classes are refused") {
  refuses(rows(12, {"1", "2.5"}), "t.csv: line 3, column \"class\": \"2.5\" is no class: classes are words or whole");
  refuses(rows(12, {"1", "2.5"}), "--loss mse");
  refuses(rows(12, {"1", "nan"}), "line 3, column \"class\": \"nan\" is no class");
  refuses(rows(12, {"1", "1e300"}), "\"1e300\" is no class");
  refuses(rows(12, {"a"}), "t.csv: every row has the class \"a\"; classes need two at least");
  refuses(rows(12, {"a", "b\xFF"}), "line 3, column \"class\": \"b\\xff\" is not UTF-8");
  refuses("1,2,class\n" + rows(12, {"0", "1"}, ""), "t.csv: line 1, column 3: \"class\" is a word and all other");
  std::string many;
  for (int i = 0; i <= most_classes; ++i) many += "1," + std::to_string(i) + "\n";
  refuses(many, "t.csv: line 65537, column 2: more than 65536 classes");
}

// Fault: an answer that is none was taken as some number.
TEST_CASE("csv: numbers to predict are kept, and words among them refused with their line") {
  const Dataset data = load(rows(12, {"0.5", "-4", "1e3"}), {.regression = true});
  CHECK(data.classes == 0);
  CHECK(data.encoding.class_names.empty());
  CHECK(std::vector(data.targets.begin(), data.targets.begin() + 3) == std::vector<float>{0.5f, -4, 1000});
  refuses(rows(12, {"1", "2", "x"}), "t.csv: line 4, column \"class\": \"x\" is no finite number",
          {.regression = true});
  refuses(rows(12, {"1", "nan"}), "line 3, column \"class\": \"nan\"", {.regression = true});
  refuses(rows(12, {"1", ""}), "line 3, column \"class\": is empty", {.regression = true});
  refuses(rows(12, {"1", "1e39"}), "line 3, column \"class\": 1e+39 is beyond the range of a float",
          {.regression = true});
}

// Fault: mean and deviation were taken over all rows, so the test rows leaked into training.
TEST_CASE("csv: features are standardised by the training rows alone") {
  const std::string content = rows(50, {"a", "b"});
  const Dataset data = load(content);
  for (int64_t column = 0; column < 2; ++column) {
    const auto value = [&](int32_t row) { return column == 0 ? row : double(row) * row; };
    double mean = 0, squares = 0;
    for (const int32_t row : data.train) mean += value(row) / double(data.train.size());
    for (const int32_t row : data.train) squares += std::pow(value(row) - mean, 2);
    const double deviation = std::sqrt(squares / double(data.train.size()));
    CHECK(data.encoding.mean[column] == doctest::Approx(mean).epsilon(1e-12));
    CHECK(data.encoding.deviation[column] == doctest::Approx(deviation).epsilon(1e-12));
    for (int32_t row = 0; row < 50; ++row)
      CHECK(data.values[row * 2 + column] == doctest::Approx((value(row) - mean) / deviation).epsilon(1e-6));
  }

  std::vector<double> values;
  for (int i = 0; i < 50; ++i) values.push_back(i), values.push_back(i * i);
  Encoding before, after;
  fit_columns(before, values, 2, data.train, "t");
  CHECK(before.mean == data.encoding.mean);
  values[2 * data.test[0]] = 1e9, values[2 * data.validation[0] + 1] = -1e9;
  fit_columns(after, values, 2, data.train, "t");
  CHECK(after == before);
  values[2 * data.train[0]] = 1e9;
  fit_columns(after = {}, values, 2, data.train, "t");
  CHECK(after.mean[0] != before.mean[0]);
}

TEST_CASE("csv: a column that never changes becomes 0, and numbers that no float holds are refused") {
  std::string constant, huge, far;
  for (int i = 0; i < 40; ++i) {
    const std::string tail = "," + std::to_string(i % 2) + "\n";
    constant += "0.1" + tail;
    huge += (i % 3 ? "1e200" : "-1e200") + tail;
    far += (i == 0 ? "1e300" : "1e-300") + tail;
  }
  const Dataset data = load(constant);
  CHECK(data.encoding.mean[0] == 0.1);
  CHECK(data.encoding.deviation[0] == 1);
  for (const float value : data.values) CHECK(value == 0);
  refuses(huge, "t.csv: column 1: its numbers are too large to standardise");
  CHECK_THROWS_AS(load(far), Error);  // by the deviation or by the value, as the split deals the row
}

TEST_CASE("csv: with a model's encoding the same file gives the same floats, labels and splits") {
  for (const bool numbers : {false, true}) {
    const File file(rows(50, numbers ? Strings{"1", "2.5"} : Strings{"b", "a", "c"}));
    const Dataset data = load_csv(file.path, {.regression = numbers});
    const Encoding encoding = data.encoding;
    const Dataset again = load_csv(file.path, {.regression = numbers, .encoding = &encoding});
    CHECK(again.values == data.values);
    CHECK(again.labels == data.labels);
    CHECK(again.targets == data.targets);
    CHECK(again.classes == data.classes);
    CHECK(again.encoding == encoding);
    CHECK(again.train == data.train);
    CHECK(again.test == data.test);
  }
}

TEST_CASE("csv: a model's classes, means and deviations hold for other files") {
  const Encoding model{.columns = {"x", "y"}, .mean = {10, 0}, .deviation = {2, 4}, .class_names = {"c", "b", "a"}};
  const DataOptions options{.encoding = &model};
  const Dataset data = load(rows(20, {"b"}), options);  // one of its classes is enough
  CHECK(data.classes == 3);
  CHECK(data.labels == std::vector<int32_t>(20, 1));
  CHECK(data.values[0] == -5);
  CHECK(data.values[7] == 9.0f / 4);
  CHECK(load(rows(20, {"a", "c"}, ""), options).labels[0] == 2);  // without a header the number of columns decides

  // However the model numbers its classes and scales its features: the rows go to the same parts.
  const Dataset alone = load(rows(20, {"a", "b", "c"})), mapped = load(rows(20, {"a", "b", "c"}), options);
  CHECK(mapped.labels != alone.labels);
  CHECK(mapped.train == alone.train);
  CHECK(mapped.validation == alone.validation);

  refuses(rows(20, {"a", "d"}), "t.csv: line 3, column \"class\": \"d\" is no class of the model, which knows c, b, a",
          options);
  refuses(rows(20, {"a", "b"}, "x,z,class\n"), "t.csv: feature 2 is \"z\", but the model wants \"y\" there", options);
  refuses("x,class\n1,a\n", "t.csv: has 1 features (x), but the model wants 2 (x, y)", options);
  refuses(rows(20, {"1", "2"}), "\"1\" is no class of the model", options);
  const Encoding images, prices{.columns = {"x", "y"}, .mean = {0, 0}, .deviation = {1, 1}};
  refuses(rows(20, {"a", "b"}), "trained on data that is not standardised", {.encoding = &images});
  refuses(rows(20, {"a", "b"}), "say --loss mse", {.encoding = &prices});
}

TEST_CASE("csv: data without columns is no data for a model of columns") {
  const Encoding model{.columns = {}, .mean = {0, 0}, .deviation = {1, 1}, .class_names = {"a", "b", "c"}};
  CHECK_THROWS_WITH_AS(load_dataset("spirals", {.encoding = &model}), Contains("its class names are none, but those"),
                       Error);
  const Encoding numbers{.columns = {}, .mean = {0, 0}, .deviation = {1, 1}};
  CHECK_THROWS_WITH_AS(load_dataset("spirals", {.encoding = &numbers}),
                       Contains("are taken as they are, but those of the model are standardised, by 2 means"), Error);
  const Encoding none;
  CHECK_NOTHROW(load_dataset("spirals", {.encoding = &none}));
}

TEST_CASE("csv: the catalog loads it by csv:FILE, and other sets take no --label") {
  const File file(rows(30, {"a", "b"}));
  const Dataset data = load_dataset("csv:" + file.path, {.validation = 0.2, .test = 0.3, .label = "class"});
  CHECK(data.validation.size() == 6);
  CHECK(data.test.size() == 9);
  CHECK(parse_data("csv:some/iris.csv.gz").label() == "iris");
  CHECK_THROWS_WITH_AS(load_dataset("csv:"), Contains("write csv:FILE"), UsageError);
  CHECK_THROWS_WITH_AS(load_dataset("blobs", {.label = "x"}), Contains("leave --label away"), UsageError);
}

TEST_CASE("csv: the real digits hold the images that are embedded") {
  const auto path = test_data("digits/digits.csv.gz");
  if (!path) return;
  const Dataset data = load_dataset("csv:" + *path), embedded = load_digits();
  REQUIRE(data.rows() == embedded.rows());
  REQUIRE(data.features == 64);
  CHECK(data.name == "digits");
  CHECK(data.labels == embedded.labels);
  CHECK(data.encoding.class_names == Strings{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
  CHECK(data.encoding.deviation[0] == 1);  // the corner is white in all of them
  double worst = 0;
  for (int64_t row = 0; row < data.rows(); ++row)
    for (int64_t i = 0; i < 64; ++i)
      worst = std::max(worst, std::abs(raw(data, row, i) - embedded.pixels[row * 64 + i]));
  CHECK(worst < 1e-5);  // 16 times the rounding of a float, and once more of the way back
}
