// What every data set promises: sizes, fixed splits, labels inside the classes, and the same numbers on every machine.
#include "data/catalog.h"
#include "data/dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

#include "data/digits.h"
#include "data/nearest.h"
#include "data/packed_file.h"
#include "engine/check.h"
#undef CHECK  // below, CHECK is doctest's
#include <doctest/doctest.h>

#include "tests/test_data_folder.h"

using namespace tapedeck;
using doctest::Contains;

namespace {

// 10 rows of 3 features, row * 10 + feature; class row % 2.
Dataset small() {
  Dataset data{.name = "small", .shape = "3", .features = 3, .classes = 2};
  for (int row = 0; row < 10; ++row) {
    for (int i = 0; i < 3; ++i) data.values.push_back(static_cast<float>(row * 10 + i));
    data.labels.push_back(row % 2);
  }
  split_by_content(data, {});
  return data;
}

std::vector<int> count_classes(const Dataset& data, const std::vector<int32_t>& rows) {
  std::vector<int> counts(data.classes);
  for (const int32_t row : rows) ++counts[data.labels[row]];
  return counts;
}

// Every row in exactly one split.
bool is_partition(const Dataset& data) {
  std::vector<int32_t> rows;
  for (const auto* part : {&data.train, &data.validation, &data.test})
    rows.insert(rows.end(), part->begin(), part->end());
  std::sort(rows.begin(), rows.end());
  for (int64_t row = 0; row < std::ssize(rows); ++row)
    if (rows[row] != row) return false;
  return std::ssize(rows) == data.rows();
}

}  // namespace

TEST_CASE("digits: the embedded images are the 1,797 of UCI") {
  const Dataset data = load_digits();
  CHECK(data.rows() == 1797);
  CHECK(data.features == 64);
  CHECK(data.shape == "8x8x1");
  CHECK(data.classes == 10);
  CHECK(content_hash({.pixels = data.pixels}) == 0x493fa2f67df550a1);  // of the csv, computed apart from this code
  std::array<int, 10> counts{};
  for (const int32_t label : data.labels) ++counts[label];
  CHECK(counts == std::array<int, 10>{178, 182, 177, 183, 181, 182, 181, 179, 174, 180});
}

TEST_CASE("digits: the embedded images equal the file that scikit-learn ships") {
  const auto path = test_data("digits/digits.csv.gz");
  if (!path) return;
  PackedFile file(*path);
  std::string csv(1 << 20, ' ');
  csv.resize(file.read(reinterpret_cast<uint8_t*>(csv.data()), csv.size()));
  std::istringstream lines(csv);

  const Dataset data = load_digits();
  int32_t row = 0;
  for (std::string line; std::getline(lines, line); ++row) {
    REQUIRE(row < data.rows());
    float features[64];
    int32_t label;
    gather(data, std::span(&row, 1), features, &label);
    std::istringstream fields(line);
    std::string field;
    for (const float feature : features) {
      std::getline(fields, field, ',');
      REQUIRE(feature * 16 == std::stof(field));
    }
    std::getline(fields, field);
    REQUIRE(label == std::stoi(field));
  }
  CHECK(row == 1797);
}

// Fault: a split that moves with the run's seed makes its runs incomparable.
TEST_CASE("digits: the splits are fixed, and all classes are in each") {
  const Dataset data = load_digits();
  CHECK(data.train.size() == 1078);
  CHECK(data.validation.size() == 359);
  CHECK(data.test.size() == 360);
  CHECK(is_partition(data));
  CHECK(std::vector<int32_t>(data.test.begin(), data.test.begin() + 5) ==
        std::vector<int32_t>{995, 849, 1, 1154, 1560});
  for (const auto* part : {&data.validation, &data.test})
    for (const int count : count_classes(data, *part)) CHECK(count >= 25);  // of about 36

  // The writers stand one after the other; each split has rows from every tenth of the file.
  for (const auto* part : {&data.train, &data.validation, &data.test}) {
    std::set<int> tenths;
    for (const int32_t row : *part) tenths.insert(row * 10 / 1797);
    CHECK(tenths.size() == 10);
  }
}

TEST_CASE("data: gather copies the rows asked for, in their order") {
  const Dataset data = small();
  float features[6];
  int32_t labels[2];
  gather(data, std::vector<int32_t>{7, 2}, features, labels);
  const float wanted[] = {70, 71, 72, 20, 21, 22};
  CHECK(std::equal(features, features + 6, wanted));
  CHECK(labels[0] == 1);
  CHECK(labels[1] == 0);

  float targets[2];  // for the mean squared error: the class id as a number
  gather(data, std::vector<int32_t>{7, 2}, features, targets);
  CHECK(targets[0] == 1.0f);
  CHECK(targets[1] == 0.0f);

  for (const int32_t row : {-1, 10}) {
    const std::vector<int32_t> rows{row};
    CHECK_THROWS_WITH_AS(gather(data, rows, features, labels), Contains("which has rows 0 to 9"), Error);
  }
}

TEST_CASE("data: pixels are scaled as they are gathered") {
  const Dataset data{
      .name = "p", .features = 3, .classes = 1, .pixels = {0, 8, 16}, .pixel_scale = 1.0f / 16, .labels = {0}};
  float features[3];
  int32_t label;
  gather(data, std::vector<int32_t>{0}, features, &label);
  CHECK(features[0] == 0.0f);
  CHECK(features[1] == 0.5f);
  CHECK(features[2] == 1.0f);
}

TEST_CASE("data: a set without classes gives numbers, and refuses to give classes") {
  Dataset data{.name = "prices", .features = 1, .values = {1, 2, 3}, .targets = {0.5f, 1.5f, 2.5f}};
  CHECK(data.rows() == 3);
  split(data, 1, 1, 0);
  CHECK_NOTHROW(check(data));
  float features[1], targets[1];
  int32_t labels[1];
  const std::vector<int32_t> rows{2};
  gather(data, rows, features, targets);
  CHECK(targets[0] == 2.5f);
  CHECK_THROWS_WITH_AS(gather(data, rows, features, labels), Contains("prices has numbers to predict"), Error);
}

// Fault: a class id outside the classes was read out of bounds in the loss.
TEST_CASE("data: a label outside the classes is refused with source, row, value and class count") {
  std::vector<int32_t> labels = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  CHECK_NOTHROW(check_labels(labels, 10, "labels.idx"));
  labels.push_back(10);
  CHECK_THROWS_WITH_AS(check_labels(labels, 10, "labels.idx"),
                       Contains("labels.idx: label 10 at row 10, but there are 10 classes (0 to 9)"), Error);
  labels = {0, -4};
  CHECK_THROWS_WITH_AS(check_labels(labels, 10, "labels.idx"), Contains("label -4 at row 1"), Error);
  Dataset data = small();
  data.labels[4] = 2;
  CHECK_THROWS_WITH_AS(check(data), Contains("small: label 2 at row 4"), Error);
}

TEST_CASE("data: sizes and splits that do not fit together are refused") {
  CHECK_NOTHROW(check(small()));
  const auto says = [](auto change, const char* message) {
    Dataset data = small();
    change(data);
    CHECK_THROWS_WITH_AS(check(data), Contains(message), Error);
  };
  says([](Dataset& d) { d.values.pop_back(); }, "has 29 numbers, but 10 rows of 3 features need 30");
  says([](Dataset& d) { d.pixels.push_back(1); }, "features in two places");
  says([](Dataset& d) { d.encoding.class_names = {"one"}; }, "1 names for 2 classes");
  says([](Dataset& d) { d.validation.clear(); }, "a split has no rows");
  says([](Dataset& d) { d.test[0] = d.train[0]; }, "is in two splits");
  says([](Dataset& d) { d.test[0] = 10; }, "row 10 is in two splits, or outside 0 to 9");
}

TEST_CASE("data: a split by content has the fractions asked for and changes with the content only") {
  Dataset data = small();
  CHECK(is_partition(data));
  CHECK(data.validation.size() == 1);
  CHECK(data.test.size() == 1);
  split_by_content(data, {.validation = 0.3, .test = 0.2});
  CHECK(is_partition(data));
  CHECK(data.validation.size() == 3);
  CHECK(data.test.size() == 2);

  Dataset again = small();
  split_by_content(again, {.validation = 0.3, .test = 0.2});
  CHECK(again.train == data.train);
  CHECK(again.test == data.test);

  again.values[0] += 1;
  CHECK(content_hash(again) != content_hash(data));
  split_by_content(again, {.validation = 0.3, .test = 0.2});
  CHECK((again.train != data.train || again.test != data.test));

  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {0.0, -0.1, 1.0, 2.0, nan}) {
    CHECK_THROWS_WITH_AS(split_by_content(data, {.validation = bad}), Contains("--validation"), UsageError);
    CHECK_THROWS_WITH_AS(split_by_content(data, {.test = bad}), Contains("--test"), UsageError);
  }
  CHECK_THROWS_WITH_AS(split_by_content(data, {.validation = 0.6, .test = 0.6}),
                       Contains("small: 10 rows leave 0 for training"), UsageError);
}

TEST_CASE("data: every set of the list that needs no files loads with the sizes that the list states") {
  int loaded = 0;
  for (const DataKind& entry : data_kinds()) {
    if (entry.takes_file || entry.takes_task || entry.needs_folder) continue;  // those have tests of their own
    const Dataset data = load_dataset(entry.name);
    CHECK(data.name == entry.name);
    CHECK(is_partition(data));
    const auto with_commas = [](size_t n) {
      const std::string digits = std::to_string(n);
      return n < 1000 ? digits : digits.substr(0, digits.size() - 3) + "," + digits.substr(digits.size() - 3);
    };
    CHECK(entry.size == with_commas(data.rows()) + " rows: " + with_commas(data.train.size()) + " / " +
                            with_commas(data.validation.size()) + " / " + with_commas(data.test.size()));
    ++loaded;
  }
  CHECK(loaded == 3);
}

TEST_CASE("data: an unknown name is refused with the nearest known one") {
  const auto says = [](const char* name, const char* message) {
    CHECK_THROWS_WITH_AS(load_dataset(name), Contains(message), UsageError);
  };
  says("minst", "data minst: no such data set; did you mean mnist?");
  says("digit", "did you mean digits?");
  says("Spiral", "did you mean spirals?");
  says("", "did you mean");
  CHECK(nearest("x", {}) == "");
  const std::vector<std::string> names = {"abcd", "badc", "abc"};
  CHECK(nearest("bacd", names) == "abcd");  // one swap, against two steps
  CHECK(nearest("ab", names) == "abc");
}

TEST_CASE("blobs: the nearest corner is right as often as the formula says") {
  const Dataset data = load_dataset("blobs");
  int right = 0;
  double sum = 0, squares = 0;
  for (int64_t row = 0; row < data.rows(); ++row) {
    const float x = data.values[2 * row], y = data.values[2 * row + 1];
    const int label = data.labels[row];
    right += label == (x > 0 ? 1 : 0) + (y > 0 ? 2 : 0);
    for (const double z : {x - (label & 1 ? 2.0 : -2.0), y - (label & 2 ? 2.0 : -2.0)}) {
      sum += z;
      squares += z * z;
    }
  }
  // Each within 4 standard errors: of a proportion, of a mean of 2n numbers, of a variance.
  const double n = static_cast<double>(data.rows()), p = std::pow(0.5 * (1 + std::erf(std::sqrt(2.0))), 2);
  CHECK(p == doctest::Approx(0.9550).epsilon(1e-4));
  CHECK(std::abs(right / n - p) < 4 * std::sqrt(p * (1 - p) / n));
  CHECK(std::abs(sum / (2 * n)) < 4 / std::sqrt(2 * n));
  CHECK(std::abs(squares / (2 * n) - 1) < 4 * std::sqrt(2 / (2 * n)));
  CHECK(count_classes(data, data.train).size() == 4);
}

TEST_CASE("spirals: points lie on the arm of their class") {
  const Dataset data = load_dataset("spirals");
  CHECK(data.rows() == 3000);
  double squares = 0;
  for (int64_t row = 0; row < data.rows(); ++row) {
    const double x = data.values[2 * row], y = data.values[2 * row + 1], radius = std::hypot(x, y);
    REQUIRE(radius < 1.000001);
    // The angle that is left after the arm's own, brought to [-pi, pi].
    const double z = std::remainder(std::atan2(x, y) - 4 * (data.labels[row] + radius), 2 * std::acos(-1.0)) / 0.2;
    squares += z * z;
  }
  CHECK(std::abs(squares / 3000 - 1) < 4 * std::sqrt(2.0 / 3000));  // 4 standard errors of a normal's variance
}

// Fault: data made with the mathematical library's last bits differ between machines, and so would their splits.
TEST_CASE("synthetic: every machine and compiler makes the same rows") {
  CHECK(content_hash(load_dataset("spirals")) == 0x5af8c4ed0500ae56);
  CHECK(content_hash(load_dataset("blobs")) == 0xe7f993a327943b3c);
}

TEST_CASE("synthetic: options change the split and never the rows") {
  const Dataset a = load_dataset("spirals"), b = load_dataset("spirals", {.validation = 0.2, .test = 0.3});
  CHECK(content_hash(a) == content_hash(b));
  CHECK(b.validation.size() == 600);
  CHECK(b.test.size() == 900);
  CHECK_THROWS_AS(load_dataset("blobs", {.validation = 1.5}), UsageError);
}
